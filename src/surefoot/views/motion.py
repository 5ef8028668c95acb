"""Rotation with translation, and shear, as training views; what comes from outside the image is black."""

from __future__ import annotations

import torch

from ..errors import require
from ..imageops.warp import rotations, shears, translations, warp
from ..types import Images
from .base import View, uniform


class RotateTranslate(View):
    """Turn every image by U(-degrees, degrees) and move it by U(-pixels, pixels) along both sides (macs section 5.8)."""

    def __init__(self, degrees: float = 5.0, pixels: float = 2.0) -> None:
        require(0 <= degrees <= 180, "degrees", "in [0, 180]", degrees)
        require(pixels >= 0, "pixels", "at least 0", pixels)
        self.degrees, self.pixels = degrees, pixels

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        turn = rotations(uniform((-self.degrees, self.degrees), images, generator))
        x, y = (uniform((-self.pixels, self.pixels), images, generator) for _ in range(2))
        return warp(images, turn @ translations(x, y))


class Shear(View):
    """Shear every image along both sides by U(-amount, amount)."""

    def __init__(self, amount: float = 0.3) -> None:
        require(0 <= amount < 1, "amount", "at least 0 and below 1", amount)
        self.amount = amount

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        x, y = (uniform((-self.amount, self.amount), images, generator) for _ in range(2))
        return warp(images, shears(x, y))
