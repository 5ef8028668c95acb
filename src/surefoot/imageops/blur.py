"""Gaussian blur of whole batches, as two passes of a one-dimensional kernel."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..types import Images


def gaussian_kernel(sigma: float, truncate: float = 4.0) -> Tensor:
    """Taps of a normalised Gaussian out to `truncate` standard deviations (odd count)."""
    radius = int(truncate * sigma + 0.5)
    offsets = torch.arange(-radius, radius + 1, dtype=torch.float64)
    taps = torch.exp(-0.5 * (offsets / sigma) ** 2)
    return taps / taps.sum()


def gaussian_blur(images: Images, sigma: float, truncate: float = 4.0) -> Images:
    """Blur every channel with the same Gaussian; edge pixels are repeated beyond the border."""
    taps = gaussian_kernel(sigma, truncate).to(images)
    channels, radius = images.shape[1], len(taps) // 2
    if radius == 0 or images.numel() == 0:
        return images.clone()
    rows = taps.view(1, 1, -1, 1).expand(channels, 1, -1, 1)
    columns = taps.view(1, 1, 1, -1).expand(channels, 1, 1, -1)
    padded = F.pad(images, (radius, radius, radius, radius), mode="replicate")
    return F.conv2d(F.conv2d(padded, rows, groups=channels), columns, groups=channels)
