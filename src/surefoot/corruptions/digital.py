"""Pixelation and JPEG: what storing a picture does to it."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import numpy as np
import torch
from torch import Tensor

from ..types import Images
from .draws import ImageDraws
from .severities import Constants

TIE = 1e-4  # halves are rounded up, also where float32 falls just short of one
UNCHANGED = 0  # torchvision's ImageReadMode: as many channels as the file has


def pixelate(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Box filter down to a fraction of the side and up again, the small image in whole levels."""
    height, width = images.shape[2:]
    rows, columns = (max(1, int(side * constants["fraction"])) for side in (height, width))
    sums = segment_sums(segment_sums(images * 255, edges(height, rows), 2), edges(width, columns), 3)
    sizes = edges(height, rows).diff()[:, None] * edges(width, columns).diff()
    small = sums.div_(sizes.to(images)).add_(0.5 + TIE).floor_().div_(255)
    return small.index_select(3, nearest(columns, width).to(images.device)).index_select(
        2, nearest(rows, height).to(images.device)
    )


def edges(side: int, parts: int) -> Tensor:
    """Where Pillow's box filter divides `side` pixels into `parts`: each pixel belongs to the part its centre lies in."""
    ends = torch.arange(parts + 1, dtype=torch.float64) * side / parts
    return (ends + 0.5).floor().long()


def nearest(small: int, side: int) -> Tensor:
    """The pixel of a small side that each pixel of a large one shows."""
    return ((torch.arange(side, dtype=torch.float64) + 0.5) * small / side).long()


def segment_sums(values: Tensor, bounds: Tensor, dim: int) -> Tensor:
    """Sums of consecutive segments along a dimension."""
    running = values.cumsum(dim).index_select(dim, (bounds[1:] - 1).to(values.device))
    return running.diff(dim=dim, prepend=torch.zeros_like(running.narrow(dim, 0, 1)))


def jpeg_compression(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """JPEG at a quality, colours at half the resolution, through torchvision's codec on the CPU, in threads.

    Levels are made with NumPy: torch's own threads would wait for work on the very cores that the codec needs.
    """
    import_module("torchvision.io")  # registers the codec, whose Python face warns of its own end for every image
    quality, pixels = int(constants["quality"]), images.cpu().numpy()
    result = np.empty_like(pixels)

    def through(part: slice) -> None:
        levels = np.multiply(pixels[part], 255)
        levels += 0.5
        stored = torch.from_numpy(np.ascontiguousarray(levels.transpose(0, 2, 3, 1), dtype=np.uint8))  # as the codec wants it
        images = [image.permute(2, 0, 1) for image in stored]
        decoded = [torch.ops.image.decode_jpeg(torch.ops.image.encode_jpeg(image, quality), UNCHANGED) for image in images]
        for place, image in enumerate(decoded):
            stored[place] = image.permute(1, 2, 0)
        np.divide(stored.numpy().transpose(0, 3, 1, 2), 255, out=result[part], dtype=result.dtype)

    workers = os.cpu_count() or 1
    step = max(1, len(pixels) // (4 * workers))
    with ThreadPoolExecutor(workers) as threads:
        deque(threads.map(through, [slice(start, start + step) for start in range(0, len(pixels), step)]), maxlen=0)
    return torch.from_numpy(result).to(images.device)
