"""Motion blur: half a Gaussian along an angle, another angle for each image."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ..imageops.fourier import correlate
from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

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
    places = (down + top) * (left + right + 1) + across + left
    kernels.flatten(1).scatter_add_(1, places, taps.expand(len(images), -1))
    return correlate(F.pad(images, (left, right, top, bottom), mode="replicate"), kernels[:, None].to(images))
