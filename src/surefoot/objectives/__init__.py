"""Training methods, a family in each file: `objective(model, images, labels)` in place of a loss.

Names are imported when they are first used.

>>> import torch
>>> import surefoot as sf
>>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
>>> objective = sf.objectives.LabelSmoothing(smoothing=0.1)
>>> terms = objective(net, torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 2, 0]))
>>> terms.total.backward()
>>> terms.logits.shape
torch.Size([4, 3])
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
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

_HOME = {
    "TRADES": ".adversarial",
    "AdversarialTraining": ".adversarial",
    "AugMix": ".augmix",
    "Objective": ".base",
    "CrossEntropy": ".cross_entropy",
    "Focal": ".cross_entropy",
    "LabelSmoothing": ".cross_entropy",
    "balanced_weights": ".cross_entropy",
    "Discriminative": ".discriminative",
    "MaCS": ".macs",
    "MaCSAugMix": ".macs",
    "MAGNMA": ".magnma",
    "DiGN": ".magnma",
    "DiverseNoise": ".magnma",
    "CutMix": ".mixup",
    "Mixup": ".mixup",
    "CleanAndNoisy": ".noisy",
    "NoisyOnly": ".noisy",
    "RandomSelfEnsemble": ".noisy",
    "Stability": ".noisy",
    "Surefoot": ".surefoot",
}

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


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        return getattr(_import_module(_HOME[name], __name__), name)
    raise AttributeError(f"module 'surefoot.objectives' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
