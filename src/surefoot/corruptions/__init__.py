"""The published corruptions and the papers' own, batched, at any severity."""

from .engine import corrupt
from .families import COMMON15, EXTRA4, FAMILIES, NAMES, PAPERS4
from .frost import frost_photographs

__all__ = ["COMMON15", "EXTRA4", "FAMILIES", "NAMES", "PAPERS4", "corrupt", "frost_photographs"]
