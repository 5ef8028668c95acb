"""Changes of tone as Pillow defines them (autocontrast, equalize, posterize, solarize), for whole batches of floats in [0, 1].

Equalize and posterize are defined on 256 levels: pixels are rounded to them first.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..types import Images
from .colour import per_image

LEVELS = 256


def autocontrast(images: Images) -> Images:
    """Stretch every channel of every image to the whole range; a channel of one level stays as it is."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    width = high - low
    flat = width <= 0
    return torch.where(flat, images, (images - low) / width.masked_fill(flat, 1.0))


def equalize(images: Images) -> Images:
    """Map the levels of every channel of every image so that each is used about equally often.

    With h the histogram and s = (pixels - h[last used level]) // 255, level i becomes (s // 2 + h[0] + ... + h[i - 1]) // s;
    where s is 0 the channel stays as it is.
    """
    levels = to_levels(images).flatten(2).flatten(0, 1).long()
    channels, pixels = levels.shape
    rows = torch.arange(channels, device=levels.device)[:, None] * LEVELS
    histogram = (levels + rows).flatten().bincount(minlength=channels * LEVELS).view(channels, LEVELS)
    step = (pixels - histogram.gather(1, levels.amax(1, keepdim=True))) // (LEVELS - 1)
    before = histogram.cumsum(1) - histogram
    table = ((step // 2 + before) // step.clamp_min(1)).clamp_max(LEVELS - 1)
    table = torch.where(step == 0, torch.arange(LEVELS, device=levels.device), table)
    return (table.to(images.dtype) / (LEVELS - 1)).gather(1, levels).view(images.shape)


def posterize(images: Images, bits: Tensor) -> Images:
    """Keep so many of the 8 bits of every pixel, with a number for each image."""
    width = 2.0 ** (8 - per_image(bits, images))
    return (to_levels(images) / width).floor() * width / (LEVELS - 1)


def solarize(images: Images, thresholds: Tensor) -> Images:
    """Invert what is not below the image's own threshold."""
    return torch.where(images < per_image(thresholds, images), images, 1 - images)


def to_levels(images: Images) -> Images:
    """Whole numbers from 0 to 255, as floats."""
    return (images * (LEVELS - 1)).round().clamp(0, LEVELS - 1)
