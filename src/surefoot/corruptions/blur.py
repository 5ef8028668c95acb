"""Blurs that are the same for every image: Gaussian, defocus and zoom."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..imageops import blur, separable
from ..imageops.fourier import correlate
from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

LARGE_GRID = 8  # up to this radius the disk lies on a grid of 17 x 17
FOURIER = 1000  # multiplications for a pixel that the Fourier transform is worth


def gaussian_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Gaussian of width sigma, truncated at 4 sigma, edge pixels repeated."""
    return blur.gaussian_blur(images, constants["sigma"])


def defocus_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Disk of a radius with a smoothed rim; borders mirrored without repeating the edge.

    Small disks are a short sum of separable filters; large ones go through the Fourier transform.
    """
    kernel = trimmed_disk(constants["radius"], constants["alias"])
    height, width = images.shape[2:]
    reach = len(kernel) // 2
    matrices = disk_matrices(constants["radius"], constants["alias"], height, width)
    if len(matrices) * (height + width) <= FOURIER or reach >= min(height, width):
        return torch.stack([separable.apply(rows, images, columns) for rows, columns in matrices]).sum(0)
    return correlate(F.pad(images, (reach,) * 4, mode="reflect"), kernel[None, None])


@lru_cache(maxsize=32)
def disk_matrices(radius: float, alias: float, height: int, width: int) -> list[tuple[Tensor, Tensor]]:
    """The disk as a sum of separable filters, each a matrix for the rows and one for the columns."""
    terms = separable.low_rank(trimmed_disk(radius, alias))
    return [
        (separable.filter_matrix(column, height, "mirror"), separable.filter_matrix(row, width, "mirror"))
        for column, row in terms
    ]


@lru_cache(maxsize=32)
def trimmed_disk(radius: float, alias: float) -> Tensor:
    """The kernel without the zeros around it (odd side, float64)."""
    kernel = disk(radius, alias)
    middle = len(kernel) // 2
    reach = max(abs(int(place) - middle) for place in kernel.any(1).nonzero())
    return kernel[middle - reach : middle + reach + 1, middle - reach : middle + reach + 1]


def disk(radius: float, alias: float) -> Tensor:
    """A disk on an integer grid that sums to 1, smoothed by a Gaussian of width alias on the same grid."""
    reach = LARGE_GRID if radius <= LARGE_GRID else int(np.ceil(radius))
    taps = 3 if radius <= LARGE_GRID else 5
    offsets = torch.arange(-reach, reach + 1, dtype=torch.float64)
    inside = (offsets[:, None] ** 2 + offsets**2 <= radius**2).double()
    places = torch.arange(taps, dtype=torch.float64) - taps // 2
    gaussian = torch.exp(-0.5 * (places / alias) ** 2)
    smooth = separable.filter_matrix(gaussian / gaussian.sum(), len(offsets), "mirror")
    return smooth @ (inside / inside.sum()) @ smooth.mT


def zoom_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Mean of the image and of its enlargements by 1, 1 + step, ... up to stop, cut and trimmed as `zoom_matrix` says."""
    factors = tuple(np.arange(1, constants["stop"], constants["step"]).tolist())
    return separable.zoom_sum(images, factors).add_(images).div_(len(factors) + 1)
