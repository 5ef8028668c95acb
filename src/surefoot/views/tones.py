"""Changes of tone as training views; none of them needs a gradient."""

from __future__ import annotations

import torch

from ..imageops.tone import autocontrast, equalize, posterize, solarize
from ..types import Images
from .base import Span, View, check_span, uniform


class AutoContrast(View):
    """Stretch every channel to the whole range."""

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        return autocontrast(images)


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
