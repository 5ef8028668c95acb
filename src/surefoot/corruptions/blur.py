"""Blurs: Gaussian, defocus and zoom, glass, and motion."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..imageops import filters
from ..imageops.filters import correlate
from ..seeds import ImageDraws
from ..types import Images
from .digital import to_levels
from .severities import Constants

# Blurs that are the same for every image: Gaussian, defocus and zoom.


LARGE_GRID = 8  # up to this radius the disk lies on a grid of 17 x 17
FOURIER = 1000  # multiplications for a pixel that the Fourier transform is worth


def gaussian_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Gaussian of width sigma, truncated at 4 sigma, edge pixels repeated."""
    return filters.gaussian_blur(images, constants["sigma"])


def defocus_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Disk of a radius with a smoothed rim; borders mirrored without repeating the edge.

    Small disks are a short sum of separable filters; large ones go through the Fourier transform.
    """
    kernel = trimmed_disk(constants["radius"], constants["alias"])
    height, width = images.shape[2:]
    reach = len(kernel) // 2
    matrices = disk_matrices(constants["radius"], constants["alias"], height, width)
    if len(matrices) * (height + width) <= FOURIER or reach >= min(height, width):
        return torch.stack([filters.apply(rows, images, columns) for rows, columns in matrices]).sum(0)
    return correlate(F.pad(images, (reach,) * 4, mode="reflect"), kernel[None, None])


@lru_cache(maxsize=32)
def disk_matrices(radius: float, alias: float, height: int, width: int) -> list[tuple[Tensor, Tensor]]:
    """The disk as a sum of separable filters, each a matrix for the rows and one for the columns."""
    terms = filters.low_rank(trimmed_disk(radius, alias))
    return [
        (filters.filter_matrix(column, height, "mirror"), filters.filter_matrix(row, width, "mirror")) for column, row in terms
    ]


@lru_cache(maxsize=32)
def trimmed_disk(radius: float, alias: float) -> Tensor:
    """The kernel without the zeros around it (odd side, float64)."""
    kernel = disk(radius, alias)
    middle = len(kernel) // 2
    reach = max(abs(int(row) - middle) for row in kernel.any(1).nonzero())
    return kernel[middle - reach : middle + reach + 1, middle - reach : middle + reach + 1]


def disk(radius: float, alias: float) -> Tensor:
    """A disk on an integer grid that sums to 1, smoothed by a Gaussian of width alias on the same grid."""
    reach = LARGE_GRID if radius <= LARGE_GRID else int(np.ceil(radius))
    taps = 3 if radius <= LARGE_GRID else 5
    offsets = torch.arange(-reach, reach + 1, dtype=torch.float64)
    inside = (offsets[:, None] ** 2 + offsets**2 <= radius**2).double()
    distances = torch.arange(taps, dtype=torch.float64) - taps // 2
    gaussian = torch.exp(-0.5 * (distances / alias) ** 2)
    smooth = filters.filter_matrix(gaussian / gaussian.sum(), len(offsets), "mirror")
    return smooth @ (inside / inside.sum()) @ smooth.mT


def zoom_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Mean of the image and of its enlargements by 1, 1 + step, ... up to stop, cut and trimmed as `zoom_matrix` says."""
    factors = tuple(np.arange(1, constants["stop"], constants["step"]).tolist())
    return filters.zoom_sum(images, factors).add_(images).div_(len(factors) + 1)


# Glass blur: pixels take the place of their neighbours, one after the other.


def glass_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Gaussian blur, round down, `rounds` times copy each pixel from within `delta`, and the same blur again."""
    delta, rounds = int(constants["delta"]), int(constants["rounds"])
    height, width = images.shape[2:]
    levels = to_levels(filters.gaussian_blur(images, constants["sigma"])).div_(255)
    chance = draws.uniform((rounds, 2, height, width))
    offsets = (chance * (2 * delta)).floor_().sub_(delta).long().to(images.device)
    source = torch.arange(height * width, device=images.device).expand(len(images), -1)
    for dy, dx in (pair.unbind(1) for pair in offsets.unbind(1)):
        source = source.gather(1, copied_from(dy, dx, delta))
    shuffled = levels.flatten(2).gather(2, source[:, None].expand(-1, images.shape[1], -1)).view_as(images)
    return filters.gaussian_blur(shuffled, constants["sigma"])


def copied_from(dy: Tensor, dx: Tensor, delta: int) -> Tensor:
    """Where each pixel's value comes from after one round, as indices in the flattened image: batch x pixels.

    From the bottom right to the top left, each pixel copies what is at its offset now. A pixel further on in reading order
    has its new value by then, so the copy leads on to that pixel's source: a chain, which pointer doubling follows.
    """
    height, width = dy.shape[1:]
    here = torch.arange(height * width, device=dy.device).view(height, width)
    moved = torch.zeros(height, width, dtype=torch.bool, device=dy.device)
    moved[delta + 1 : height - delta + 1, delta + 1 : width - delta + 1] = True
    there = torch.where(moved, here + dy * width + dx, here).flatten(1)
    leads_on = (there > here.flatten()) & moved.flatten()[there]
    root = torch.where(leads_on, there, here.flatten())
    while not torch.equal(further := root.gather(1, root), root):
        root = further
    return there.gather(1, root)


# Motion blur: half a Gaussian along an angle, another angle for each image.


NEGLIGIBLE = 1e-5  # share of the first tap


def motion_blur(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Half a Gaussian of 2 * radius + 1 taps along an angle in [-45, 45] degrees; edge pixels repeated."""
    turns = draws.uniform((1,))[:, 0] - 0.5
    return along(images, 0.0, turns, constants["radius"], constants["sigma"])


def along(images: Images, direction: float, turns: Tensor, radius: float, sigma: float) -> Images:
    """Half a Gaussian with taps at 0, 1, ... pixels in each image's own direction: `direction` (0 or -90 degrees) + 90 * turns.

    Turns are in [-0.5, 0.5). Taps lie on whole pixels; the padding is the same for all angles, so that a batch changes nothing.
    """
    steps = torch.arange(int(2 * radius) + 1, dtype=torch.float64)
    taps = torch.exp(-0.5 * (steps / sigma) ** 2)
    taps = taps / taps.sum()
    kept = int((taps > NEGLIGIBLE * taps[0]).sum())
    steps, taps = steps[:kept], taps[:kept]
    angles = (direction + 90 * turns.double()).deg2rad()[:, None]
    across, down = ((steps * part - 0.5).ceil().long() for part in (angles.cos(), angles.sin()))
    ahead, beside = kept - 1, math.ceil((kept - 1) * math.sqrt(0.5))
    top, bottom, left, right = (beside, beside, 0, ahead) if direction == 0 else (ahead, 0, beside, beside)
    kernels = torch.zeros(len(images), top + bottom + 1, left + right + 1, dtype=torch.float64)
    indices = (down + top) * (left + right + 1) + across + left
    kernels.flatten(1).scatter_add_(1, indices, taps.expand(len(images), -1))
    return correlate(F.pad(images, (left, right, top, bottom), mode="replicate"), kernels[:, None].to(images))
