"""The published corruptions, their second set and the papers' own, batched, at any severity."""

from .engine import GENERATOR, corrupt
from .families import CBAR, CBAR_CIFAR, COMMON15, EXTRA4, FAMILIES, NAMES, PAPERS4
from .frost import frost_photographs
from .levels import add_gaussian_noise, add_uniform_noise
from .published import corrupted, open_copies
from .sheet import draw_sheet
from .writing import write

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
