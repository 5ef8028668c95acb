"""Training methods, one file each: `objective(model, images, labels)` in place of a loss."""

from .adversarial import AdversarialTraining
from .augmix import AugMix
from .base import Objective
from .clean_and_noisy import CleanAndNoisy
from .cross_entropy import CrossEntropy
from .cutmix import CutMix
from .discriminative import Discriminative
from .diverse_noise import DiverseNoise
from .focal import Focal
from .label_smoothing import LabelSmoothing
from .macs import MaCS
from .macs_augmix import MaCSAugMix
from .magnma import MAGNMA
from .mixup import Mixup
from .noisy import NoisyOnly
from .random_self_ensemble import RandomSelfEnsemble
from .stability import Stability
from .targets import balanced_weights
from .trades import TRADES

__all__ = [
    "MAGNMA",
    "TRADES",
    "AdversarialTraining",
    "AugMix",
    "CleanAndNoisy",
    "CrossEntropy",
    "CutMix",
    "Discriminative",
    "DiverseNoise",
    "Focal",
    "LabelSmoothing",
    "MaCS",
    "MaCSAugMix",
    "Mixup",
    "NoisyOnly",
    "Objective",
    "RandomSelfEnsemble",
    "Stability",
    "balanced_weights",
]
