"""Views of one change each: noise, blur, JPEG, tone, rotation and shear."""

from __future__ import annotations

import math

import torch

from ..errors import require
from ..imageops.filters import small_blur
from ..imageops.jpeg import jpeg
from ..imageops.tone import adjust_contrast, autocontrast, equalize, posterize, solarize
from ..imageops.warp import rotations, shears, translations, warp
from ..seeds import draw
from ..types import Images
from .base import Span, View, check_span, uniform

# Gaussian noise as a training view.


class GaussianNoise(View):
    """Add N(0, std^2) to every pixel; `std` is one number, or (low, high) for a level drawn for each image.

    The result is not clipped: clipping halves the variance at black pixels and breaks the small-noise limit. `clip` cuts it to
    [0, 1] all the same, as some authors train.
    """

    def __init__(self, std: Span = 0.1, clip: bool = False) -> None:
        self.std, self.clip, self._ends = std, clip, check_span("std", std, 0, math.inf)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        std = uniform(self._ends, images, generator).view(-1, 1, 1, 1)
        noisy = draw(torch.randn, images.shape, images, generator).mul_(std).add_(images)
        return noisy.clamp_(0, 1) if self.clip else noisy


# Gaussian blur as a training view.


class GaussianBlur(View):
    """Blur every image with a `size` x `size` Gaussian whose sigma is drawn for each image (macs section 3.3)."""

    def __init__(self, sigma: Span = (0.1, 2.0), size: int = 3) -> None:
        require(size % 2 == 1 and size > 0, "size", "odd and positive", size)
        self.sigma, self.size, self._ends = sigma, size, check_span("sigma", sigma, 1e-3, 1e3)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        return small_blur(images, uniform(self._ends, images, generator), self.size)


# JPEG compression as a training view.


class JPEG(View):
    """Compress every image at a quality drawn for it (whole numbers in 1 to 100); it has no gradient."""

    def __init__(self, quality: Span = (30, 90)) -> None:
        self.quality, self._ends = quality, check_span("quality", quality, 1, 100)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        with torch.no_grad():
            return jpeg(images, uniform(self._ends, images, generator).round())


# Changes of tone as training views; none of them needs a gradient.


class AutoContrast(View):
    """Stretch every channel to the whole range."""

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        return autocontrast(images)


class Contrast(View):
    """Move every pixel away from the mean grey by a factor drawn for each image; below 1 the picture becomes flat."""

    def __init__(self, factor: Span = (0.2, 1.0)) -> None:
        self.factor, self._ends = factor, check_span("factor", factor, 0, 10)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        return adjust_contrast(images, uniform(self._ends, images, generator))


class Equalize(View):
    """Use every level about equally often."""

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        return equalize(images)


class Posterize(View):
    """Keep a number of bits of every pixel, drawn for each image and rounded."""

    def __init__(self, bits: Span = (1, 4)) -> None:
        self.bits, self._ends = bits, check_span("bits", bits, 1, 8)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        return posterize(images, uniform(self._ends, images, generator).round())


class Solarize(View):
    """Invert pixels that are not below a threshold, drawn for each image."""

    def __init__(self, threshold: Span = (0.0, 1.0)) -> None:
        self.threshold, self._ends = threshold, check_span("threshold", threshold, 0, 2)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        return solarize(images, uniform(self._ends, images, generator))


# Rotation with translation, and shear, as training views; what comes from outside the image is black.


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
