"""Brightness, contrast and saturation in the benchmarks' definitions, without a round trip through HSV.

With V the largest and m the smallest channel of a pixel, saturation is S = (V - m) / V. Changing V alone scales the pixel;
changing S alone scales the channels' distances from V.
"""

from __future__ import annotations

import torch

from ..types import Images
from .draws import ImageDraws
from .severities import Constants

TINY = 1e-6


def contrast(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """(x - channel mean) * factor + channel mean."""
    means = images.mean((2, 3), keepdim=True)
    return torch.lerp(means, images, constants["factor"])


def brightness(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """HSV value + shift; black becomes grey."""
    value = images.amax(1, keepdim=True)
    lighter = (value + constants["value_shift"]).clamp_(max=1)
    return torch.where(value > TINY, images * (lighter / value.clamp_min(TINY)), lighter)


def saturate(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """HSV saturation * scale + shift; grey has the hue of red, so that a shift makes it reddish.

    Images of one channel have no saturation and stay as they are.
    """
    if images.shape[1] == 1:
        return images.clone()
    value = images.amax(1, keepdim=True)
    spread = value - images.amin(1, keepdim=True)
    saturation = spread / value.clamp_min(TINY)
    wanted = (saturation * constants["scale"]).add_(constants["shift"]).clamp_(0, 1)
    coloured = value - (value - images) * (wanted * value / spread.clamp_min(TINY))
    if constants["shift"] == 0:
        return coloured
    pale = value * (1 - wanted)
    return torch.where(spread > TINY, coloured, torch.cat([value, pale, pale], 1))
