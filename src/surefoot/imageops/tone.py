"""Brightness, contrast, saturation and tone of whole batches, each image with its own factor."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import require
from ..types import Images

# Brightness, contrast and saturation of whole batches, each image with its own factor, in torchvision's definitions.
#
# Factor 1 changes nothing; 0 gives black, the mean grey, and the grey image. Results are clipped to [0, 1].


GREY = (0.2989, 0.587, 0.114)  # torchvision's weights (ITU-R BT.601)


def adjust_brightness(images: Images, factors: Tensor) -> Images:
    """Multiply every image by its factor."""
    return (images * per_image(factors, images)).clamp_(0, 1)


def adjust_contrast(images: Images, factors: Tensor) -> Images:
    """Move every pixel away from the mean of the grey image by the image's factor."""
    means = grey(images).mean((1, 2, 3), keepdim=True)
    return torch.lerp(means, images, per_image(factors, images)).clamp_(0, 1)


def adjust_saturation(images: Images, factors: Tensor) -> Images:
    """Move every pixel away from its own grey by the image's factor; images of one channel stay as they are."""
    weights = per_image(factors, images)
    if images.shape[1] == 1:
        return images
    return torch.lerp(grey(images), images, weights).clamp_(0, 1)


def grey(images: Images) -> Images:
    """One channel: the weighted sum of three, or the only one there is."""
    require(images.shape[1] in (1, 3), "images", "of 1 or 3 channels", images.shape[1])
    if images.shape[1] == 1:
        return images
    red, green, blue = images.split(1, 1)
    weighted: Images = GREY[0] * red + GREY[1] * green + GREY[2] * blue
    return weighted


def per_image(factors: Tensor, images: Images) -> Tensor:
    """The factors, shaped to broadcast over their images."""
    require(images.ndim == 4 and images.is_floating_point(), "images", "float, batch x channels x height x width", images.shape)
    require(factors.shape == (len(images),), "factors", f"one for each of {len(images)} images", tuple(factors.shape))
    return factors.to(images).view(-1, 1, 1, 1)


# Changes of tone as Pillow defines them (autocontrast, equalize, posterize, solarize), for whole batches of floats in [0, 1].
#
# Equalize and posterize are defined on 256 levels: pixels are rounded to them first.


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
