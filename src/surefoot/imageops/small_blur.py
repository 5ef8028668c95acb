"""Gaussian blur with a small kernel and a standard deviation for each image, as torchvision's `gaussian_blur` for one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import require
from ..types import Images
from .colour import per_image


def small_blur(images: Images, sigma: Tensor, size: int = 3) -> Images:
    """Blur each image with a `size` x `size` Gaussian of its own sigma; the image is reflected at its border.

    Sums of shifted slices: a grouped convolution with a kernel for each image is many times slower on a CPU.
    """
    require(size % 2 == 1 and size > 0, "size", "odd and positive", size)
    radius = size // 2
    require(min(images.shape[2:]) > radius, "images", f"larger than {radius} pixels", tuple(images.shape[2:]))
    offsets = torch.arange(radius + 1, dtype=images.dtype, device=images.device)
    taps = torch.exp(-0.5 * (offsets / per_image(sigma, images).flatten(1)) ** 2)
    taps = taps / (taps[:, :1] + 2 * taps[:, 1:].sum(1, keepdim=True))
    for dimension in (2, 3):
        padding = (0, 0, radius, radius) if dimension == 2 else (radius, radius, 0, 0)
        padded, length = F.pad(images, padding, mode="reflect"), images.shape[dimension]
        images = images * taps[:, 0].view(-1, 1, 1, 1)
        for k in range(1, radius + 1):
            pair = padded.narrow(dimension, radius - k, length) + padded.narrow(dimension, radius + k, length)
            images = images.addcmul_(pair, taps[:, k].view(-1, 1, 1, 1))
    return images
