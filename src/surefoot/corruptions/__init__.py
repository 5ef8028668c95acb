"""The published corruptions, batched, at any severity."""

from .engine import corrupt
from .families import COMMON15, EXTRA4, FAMILIES, NAMES

__all__ = ["COMMON15", "EXTRA4", "FAMILIES", "NAMES", "corrupt"]
