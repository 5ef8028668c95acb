"""Corruptions of the noise family."""

from __future__ import annotations

from ..types import Images
from .draws import ImageDraws
from .severities import Constants


def gaussian_noise(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """x + N(0, std) at every pixel and channel."""
    return images + draws.normal(tuple(images.shape[1:])).to(images) * constants["std"]
