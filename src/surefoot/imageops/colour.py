"""Brightness, contrast and saturation of whole batches, each image with its own factor, in torchvision's definitions.

Factor 1 changes nothing; 0 gives black, the mean grey, and the grey image. Results are clipped to [0, 1].
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import require
from ..types import Images

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
