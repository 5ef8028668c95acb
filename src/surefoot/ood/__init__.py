"""What looks foreign to a model: scores of pictures that are none of its classes.

Names are imported when they are first used.

>>> import torch
>>> import surefoot as sf
>>> known = torch.tensor([[9.0, 0.0], [0.0, 9.0]])
>>> detector = sf.ood.fit("msp", logits=known)
>>> scores = detector.score(logits=torch.tensor([[9.0, 0.0], [0.1, 0.0]]))
>>> bool(scores[1] > scores[0])  # the second looks more foreign
True
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from ._separation import Separation, separation
    from .detectors import NAMES, Detector, fit
    from .known import Known, load_known

_HOME = {
    "NAMES": ".detectors",
    "Detector": ".detectors",
    "fit": ".detectors",
    "Known": ".known",
    "load_known": ".known",
    "Separation": "._separation",
    "separation": "._separation",
}

__all__ = ["NAMES", "Detector", "Known", "Separation", "fit", "load_known", "separation"]


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        return getattr(_import_module(_HOME[name], __name__), name)
    raise AttributeError(f"module 'surefoot.ood' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
