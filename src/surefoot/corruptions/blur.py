"""Corruptions of the blur family."""

from __future__ import annotations

from ..imageops import blur
from ..types import Images
from .draws import ImageDraws
from .severities import Constants


def gaussian_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Gaussian of width sigma, truncated at 4 sigma, edge pixels repeated."""
    return blur.gaussian_blur(images, constants["sigma"])
