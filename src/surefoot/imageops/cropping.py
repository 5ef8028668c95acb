"""Shifts and mirrors of whole batches, each image with its own, without a loop over images."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import require


def shift_and_flip(images: Tensor, top: Tensor, left: Tensor, flip: Tensor, padding: int) -> Tensor:
    """Pad with zeros, cut from each image its own window of the old size at (top, left), and mirror those whose flip is true.

    Offsets are whole numbers in [0, 2 * padding]; `padding` for both gives the image itself. Any dtype, uint8 or float.
    One `gather` over flattened pixels beats two gathers, advanced indexing and strided windows (`benchmarks/augmentation.py`).
    """
    require(images.ndim == 4, "images", "batch x channels x height x width", tuple(images.shape))
    require(padding >= 0, "padding", "at least 0", padding)
    count, channels, height, width = images.shape
    for name, offsets in (("top", top), ("left", left)):
        require(offsets.shape == (count,), name, f"one for each of {count} images", tuple(offsets.shape))
        if offsets.device.type == "cpu" and count:  # elsewhere this would make the device wait
            low, high = (int(v) for v in offsets.aminmax())
            require(low >= 0 and high <= 2 * padding, name, f"in [0, {2 * padding}]", (low, high))
    require(flip.shape == (count,) and flip.dtype == torch.bool, "flip", f"{count} truth values", (flip.dtype, *flip.shape))
    padded = F.pad(images, (padding,) * 4) if padding else images
    return padded.flatten(2).gather(2, places(top, left, flip, (height, width), padding, channels)).view(images.shape)


def places(top: Tensor, left: Tensor, flip: Tensor, size: tuple[int, int], padding: int, channels: int) -> Tensor:
    """Where each output pixel lies in the flattened padded image: batch x channels x (height * width)."""
    height, width = size
    rows = top[:, None] + torch.arange(height, device=top.device)
    columns = torch.arange(width, device=top.device)
    columns = torch.where(flip[:, None], width - 1 - columns, columns) + left[:, None]
    flat = rows[:, :, None] * (width + 2 * padding) + columns[:, None, :]
    return flat.view(len(top), 1, height * width).expand(-1, channels, -1)
