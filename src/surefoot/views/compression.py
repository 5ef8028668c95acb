"""JPEG compression as a training view."""

from __future__ import annotations

import torch

from ..imageops.jpeg import jpeg
from ..types import Images
from .base import Span, View, check_span, uniform


class JPEG(View):
    """Compress every image at a quality drawn for it (whole numbers in 1 to 100); it has no gradient."""

    def __init__(self, quality: Span = (30, 90)) -> None:
        self.quality, self._ends = quality, check_span("quality", quality, 1, 100)

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        with torch.no_grad():
            return jpeg(images, uniform(self._ends, images, generator).round())
