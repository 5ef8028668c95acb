"""Noise at a level of one's own, as papers give it: a standard deviation or an amplitude in pixel units, such as 16 / 255."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import require
from ..seeds import ImageDraws, check_indices
from ..types import Images
from .engine import as_pixels, check_pixels
from .noise import gaussian_noise
from .papers import uniform_noise


def add_gaussian_noise(images: Images, level: float, *, seed: int = 0, indices: Tensor | None = None) -> Images:
    """x + N(0, level), clipped to [0, 1]; the same draws as `corrupt(images, "gaussian_noise", ...)`."""
    draws = prepare(images, level, "gaussian_noise", seed, indices)
    return finish(gaussian_noise(as_pixels(images), {"std": level}, draws), images)


def add_uniform_noise(images: Images, level: float, *, seed: int = 0, indices: Tensor | None = None) -> Images:
    """x + U(-level, level), clipped to [0, 1]; the same draws as `corrupt(images, "uniform_noise", ...)`."""
    draws = prepare(images, level, "uniform_noise", seed, indices)
    return finish(uniform_noise(as_pixels(images), {"level": level}, draws), images)


def prepare(images: Images, level: float, name: str, seed: int, indices: Tensor | None) -> ImageDraws:
    """Check what was given."""
    check_pixels(images)
    require(0 <= level <= 1, "level", "from 0 to 1, in pixel units", level)
    return ImageDraws(seed, name, check_indices(indices, len(images)))


def finish(noisy: Images, images: Images) -> Images:
    """Clipped, in the dtype of the images; bytes are rounded to the nearest, floats not at all."""
    clipped = noisy.clamp_(0, 1)
    return clipped.mul_(255).round_().to(torch.uint8) if images.dtype == torch.uint8 else clipped.to(images.dtype)
