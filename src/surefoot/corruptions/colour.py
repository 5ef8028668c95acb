"""Brightness, contrast and saturation in the benchmarks' definitions, without a round trip through HSV.

With V the largest and m the smallest channel of a pixel, saturation is S = (V - m) / V. Changing V alone scales the pixel;
changing S alone scales the channels' distances from V.
"""

from __future__ import annotations

import torch

from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

TINY = 1e-6


def contrast(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """(x - channel mean) * factor + channel mean."""
    means = images.mean((2, 3), keepdim=True)
    return torch.lerp(means, images, constants["factor"])


def brightness(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """HSV value + shift; black becomes grey."""
    value = largest(images)
    lighter = (value + constants["value_shift"]).clamp_(max=1)
    black = lighter * (value <= TINY)
    return torch.addcmul(black, images, lighter.div_(value.clamp_min(TINY)))


def saturate(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """HSV saturation * scale + shift; grey has the hue of red, so that a shift makes it reddish.

    Images of one channel have no saturation and stay as they are.
    """
    if images.shape[1] == 1:
        return images.clone()
    value = largest(images)
    spread = largest(-images).add_(value)
    wanted = spread.div(value.clamp_min(TINY)).mul_(constants["scale"]).add_(constants["shift"]).clamp_(0, 1)
    factor = wanted.mul(value).div_(spread.clamp_min(TINY))
    coloured = torch.lerp(value, images, factor)
    if constants["shift"] == 0:
        return coloured
    pale = value * (1 - wanted)
    return torch.where(spread > TINY, coloured, torch.cat([value, pale, pale], 1))


def largest(images: Images) -> Images:
    """The largest channel of each pixel, one by one: `amax` over channels is slow."""
    value = images[:, :1]
    for channel in range(1, images.shape[1]):
        value = torch.maximum(value, images[:, channel : channel + 1])
    return value
