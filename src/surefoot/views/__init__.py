"""Cheap random perturbations for training: `view(images, generator=None)`, batched, with parameters drawn for each image.

Names are imported when they are first used.

>>> import torch
>>> import surefoot as sf
>>> view = sf.views.build_view("blur+noise")
>>> view(torch.rand(2, 3, 8, 8)).shape
torch.Size([2, 3, 8, 8])
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from .augmix import AugMixChains
    from .base import View
    from .combinations import Chain, MixedTone, OneOf
    from .simple import (
        JPEG,
        AutoContrast,
        Contrast,
        Equalize,
        GaussianBlur,
        GaussianNoise,
        Posterize,
        RotateTranslate,
        Shear,
        Solarize,
    )
    from .table import build_view

_HOME = {
    "AugMixChains": ".augmix",
    "View": ".base",
    "Chain": ".combinations",
    "MixedTone": ".combinations",
    "OneOf": ".combinations",
    "JPEG": ".simple",
    "AutoContrast": ".simple",
    "Contrast": ".simple",
    "Equalize": ".simple",
    "GaussianBlur": ".simple",
    "GaussianNoise": ".simple",
    "Posterize": ".simple",
    "RotateTranslate": ".simple",
    "Shear": ".simple",
    "Solarize": ".simple",
    "build_view": ".table",
}

__all__ = [
    "JPEG",
    "AugMixChains",
    "AutoContrast",
    "Chain",
    "Contrast",
    "Equalize",
    "GaussianBlur",
    "GaussianNoise",
    "MixedTone",
    "OneOf",
    "Posterize",
    "RotateTranslate",
    "Shear",
    "Solarize",
    "View",
    "build_view",
]


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        return getattr(_import_module(_HOME[name], __name__), name)
    raise AttributeError(f"module 'surefoot.views' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
