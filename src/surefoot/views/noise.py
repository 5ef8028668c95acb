"""Gaussian noise as a training view."""

from __future__ import annotations

import math

import torch

from ..seeds import draw
from ..types import Images
from .base import Span, View, check_span, uniform


class GaussianNoise(View):
    """Add N(0, std^2) to every pixel; `std` is one number, or (low, high) for a level drawn for each image.

    The result is not clipped: clipping halves the variance at black pixels and breaks the small-noise limit.
    """

    def __init__(self, std: Span = 0.1) -> None:
        self.std, self._ends = std, check_span("std", std, 0, math.inf)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        std = uniform(self._ends, images, generator).view(-1, 1, 1, 1)
        return draw(torch.randn, images.shape, images, generator).mul_(std).add_(images)
