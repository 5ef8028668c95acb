"""Gaussian noise as a training view."""

from __future__ import annotations

import torch

from ..errors import require
from ..seeds import draw
from ..types import Images


class GaussianNoise:
    """Add N(0, std^2) to every pixel, with std drawn from U(min_std, max_std) for each image.

    The result is not clipped: clipping halves the variance at black pixels and breaks the small-noise limit.
    """

    def __init__(self, max_std: float = 0.1, min_std: float | None = None) -> None:
        low = max_std if min_std is None else min_std
        require(0 <= low <= max_std, "min_std", f"between 0 and max_std = {max_std}", low)
        self.max_std, self.min_std = max_std, low

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        share = draw(torch.rand, (len(images), 1, 1, 1), images, generator)
        std = self.min_std + (self.max_std - self.min_std) * share
        return images + std * draw(torch.randn, images.shape, images, generator)
