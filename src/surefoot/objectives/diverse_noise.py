"""Training on images with noise of many levels."""

from __future__ import annotations

from typing import Any

from ..errors import require
from .noisy import NoisyOnly


class DiverseNoise(NoisyOnly):
    """L = CE(f(x + d), y) with d ~ N(0, s^2 I) and s ~ U(0, max_std) for each image (magnma Eq. 12), or the given view."""

    def __init__(self, max_std: float = 0.2, view: Any = None) -> None:
        require(max_std >= 0, "max_std", "at least 0", max_std)
        super().__init__(view={"name": "noise", "std": [0.0, max_std]} if view is None else view)
        self.max_std, self.view = max_std, view
