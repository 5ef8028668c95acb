"""Training methods, one file each: `objective(model, images, labels)` in place of a loss."""

from .base import Objective
from .cross_entropy import CrossEntropy
from .focal import Focal
from .label_smoothing import LabelSmoothing
from .targets import balanced_weights

__all__ = ["CrossEntropy", "Focal", "LabelSmoothing", "Objective", "balanced_weights"]
