"""Training methods, one file each: `objective(model, images, labels)` in place of a loss."""

from .base import Objective
from .cross_entropy import CrossEntropy
from .focal import Focal
from .label_smoothing import LabelSmoothing

__all__ = ["CrossEntropy", "Focal", "LabelSmoothing", "Objective"]
