"""Gaussian blur of whole batches, as a product with one matrix for the rows and one for the columns."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from ..types import Images
from .separable import apply, filter_matrix


def gaussian_kernel(sigma: float, truncate: float = 4.0) -> Tensor:
    """Taps of a normalised Gaussian out to `truncate` standard deviations (odd count)."""
    radius = int(truncate * sigma + 0.5)
    offsets = torch.arange(-radius, radius + 1, dtype=torch.float64)
    taps = torch.exp(-0.5 * (offsets / sigma) ** 2)
    return taps / taps.sum()


@lru_cache(maxsize=64)
def gaussian_matrix(side: int, sigma: float, truncate: float = 4.0, border: str = "edge") -> Tensor:
    """The Gaussian as a side x side matrix with one of separable's borders; sigma 0 changes nothing."""
    taps = gaussian_kernel(sigma, truncate) if sigma > 0 else torch.ones(1, dtype=torch.float64)
    return filter_matrix(taps, side, border)


def gaussian_blur(images: Images, sigma: float, truncate: float = 4.0) -> Images:
    """Blur every channel with the same Gaussian; edge pixels are repeated beyond the border."""
    if int(truncate * sigma + 0.5) == 0 or images.numel() == 0:
        return images.clone()
    rows, columns = (gaussian_matrix(side, sigma, truncate) for side in images.shape[2:])
    return apply(rows, images, columns)
