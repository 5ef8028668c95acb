"""The published corruptions, their second set and the papers' own, batched, at any severity.

What needs torch is imported when it is first used: the names of the corruptions do not.

>>> import torch
>>> import surefoot as sf
>>> images = torch.rand(2, 3, 32, 32)
>>> foggy = sf.corruptions.corrupt(images, "fog", 3, seed=0)
>>> torch.equal(foggy, sf.corruptions.corrupt(images, "fog", 3, seed=0))
True
>>> len(sf.corruptions.NAMES)
19
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from .families import CBAR, CBAR_CIFAR, COMMON15, EXTRA4, FAMILIES, NAMES, PAPERS4

if TYPE_CHECKING:
    from .copies import draw_sheet, write
    from .engine import GENERATOR, corrupt
    from .noise import add_gaussian_noise, add_uniform_noise
    from .published import corrupted, open_copies
    from .weather import frost_photographs

_HOME = {
    "GENERATOR": "engine",
    "corrupt": "engine",
    "frost_photographs": "weather",
    "add_gaussian_noise": "noise",
    "add_uniform_noise": "noise",
    "corrupted": "published",
    "open_copies": "published",
    "draw_sheet": "copies",
    "write": "copies",
}

__all__ = [
    "CBAR",
    "CBAR_CIFAR",
    "COMMON15",
    "EXTRA4",
    "FAMILIES",
    "GENERATOR",
    "NAMES",
    "PAPERS4",
    "add_gaussian_noise",
    "add_uniform_noise",
    "corrupt",
    "corrupted",
    "draw_sheet",
    "frost_photographs",
    "open_copies",
    "write",
]


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        return getattr(_import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'surefoot.corruptions' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
