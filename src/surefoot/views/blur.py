"""Gaussian blur as a training view."""

from __future__ import annotations

import torch

from ..errors import require
from ..imageops.small_blur import small_blur
from ..types import Images
from .base import Span, View, check_span, uniform


class GaussianBlur(View):
    """Blur every image with a `size` x `size` Gaussian whose sigma is drawn for each image (macs section 3.3)."""

    def __init__(self, sigma: Span = (0.1, 2.0), size: int = 3) -> None:
        require(size % 2 == 1 and size > 0, "size", "odd and positive", size)
        self.sigma, self.size, self._ends = sigma, size, check_span("sigma", sigma, 1e-3, 1e3)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        return small_blur(images, uniform(self._ends, images, generator), self.size)
