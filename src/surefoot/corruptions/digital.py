"""Corruptions of the digital family."""

from __future__ import annotations

from ..types import Images
from .draws import ImageDraws
from .severities import Constants


def contrast(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """(x - channel mean) * factor + channel mean."""
    means = images.mean((2, 3), keepdim=True)
    return (images - means) * constants["factor"] + means
