"""Training methods, a family in each file: `objective(model, images, labels)` in place of a loss.

>>> import torch
>>> import surefoot as sf
>>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
>>> objective = sf.objectives.LabelSmoothing(smoothing=0.1)
>>> terms = objective(net, torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 2, 0]))
>>> terms.total.backward()
>>> terms.logits.shape
torch.Size([4, 3])
"""

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
