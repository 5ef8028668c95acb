"""Fog: a fractal haze, another for each image."""

from __future__ import annotations

import torch
from torch import Tensor

from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

COARSEST = 100.0  # the amplitude of the first midpoint


def fog(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """(x + amount * plasma) * max(x) / (max(x) + amount)."""
    height, width = images.shape[2:]
    size = 1 << (max(height, width) - 1).bit_length()
    haze = plasma(draws.uniform((size * size - 1,)).to(images), size, constants["decay"])
    brightest = images.amax((1, 2, 3), keepdim=True)
    amount = constants["amount"]
    return torch.add(images, haze[:, None, :height, :width], alpha=amount).mul_(brightest / (brightest + amount))


def plasma(uniform: Tensor, size: int, decay: float) -> Tensor:
    """Diamond-square fractals in [0, 1] from batch x (size * size - 1) numbers in [0, 1): batch x size x size.

    Each new point is the mean of its 4 neighbours, wrapped at the borders, plus w * U(-w, w); each step divides w by `decay`.
    """
    corners = uniform.new_zeros(len(uniform), 1, 1)
    amplitude, used = COARSEST, 0
    while (side := corners.shape[1]) < size:
        part = uniform[:, used : used + 3 * side * side].unflatten(1, (3, side, side))
        middle, across, down = ((part - 0.5) * (2 * amplitude**2)).unbind(1)
        right = corners + corners.roll(-1, 2)
        middle = torch.add(middle, right + right.roll(-1, 1), alpha=0.25)
        across = torch.add(across, right + (middle + middle.roll(1, 1)), alpha=0.25)
        down = torch.add(down, (corners + corners.roll(-1, 1)) + (middle + middle.roll(1, 2)), alpha=0.25)
        upper, lower = torch.stack([corners, across], 3), torch.stack([down, middle], 3)
        corners = torch.stack([upper.flatten(2), lower.flatten(2)], 2).view(len(uniform), 2 * side, 2 * side)
        used += 3 * side * side
        amplitude /= decay
    low, high = corners.amin((1, 2), keepdim=True), corners.amax((1, 2), keepdim=True)
    return (corners - low) / (high - low).clamp_min(torch.finfo(corners.dtype).tiny)
