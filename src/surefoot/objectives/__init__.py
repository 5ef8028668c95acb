"""Training methods, a family in each file: `objective(model, images, labels)` in place of a loss."""

from .adversarial import TRADES, AdversarialTraining
from .augmix import AugMix
from .base import Objective
from .cross_entropy import CrossEntropy, Focal, LabelSmoothing, balanced_weights
from .discriminative import Discriminative
from .macs import MaCS, MaCSAugMix
from .magnma import MAGNMA, DiGN, DiverseNoise
from .mixup import CutMix, Mixup
from .noisy import CleanAndNoisy, NoisyOnly, RandomSelfEnsemble, Stability
from .surefoot import Surefoot

__all__ = [
    "MAGNMA",
    "TRADES",
    "AdversarialTraining",
    "AugMix",
    "CleanAndNoisy",
    "CrossEntropy",
    "CutMix",
    "DiGN",
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
    "Surefoot",
    "balanced_weights",
]
