"""Pixelation and JPEG: what storing a picture does to it."""

from __future__ import annotations

import io
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

THREADED = 64 * 64  # pixels; below, Pillow spends its time in Python, and threads wait for one another
TIE = 1e-4  # halves are rounded up, also where float32 falls just short of one


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
    """JPEG at a quality, colours at half the resolution, by Pillow's codec (the published one) on the CPU, in threads.

    Levels are made with NumPy: torch's own threads would wait for work on the very cores that the codec needs.
    """
    quality, pixels = int(constants["quality"]), images.cpu().numpy()
    result = np.empty_like(pixels)

    def through(part: slice) -> None:
        levels = np.multiply(pixels[part], 255)
        levels += 0.5
        stored = np.ascontiguousarray(levels.transpose(0, 2, 3, 1), dtype=np.uint8)
        for image in stored[..., 0] if stored.shape[3] == 1 else stored:
            image[:] = through_jpeg(image, quality)
        np.divide(stored.transpose(0, 3, 1, 2), 255, out=result[part], dtype=result.dtype)

    workers = (os.cpu_count() or 1) if pixels[0, 0].size >= THREADED else 1
    step = max(1, len(pixels) // (4 * workers))
    with ThreadPoolExecutor(workers) as threads:
        deque(threads.map(through, [slice(start, start + step) for start in range(0, len(pixels), step)]), maxlen=0)
    return torch.from_numpy(result).to(images.device)


def through_jpeg(levels: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """One picture, height x width (x 3), written as JPEG and read again; the decoder is called without looking for a header."""
    picture, file = Image.fromarray(levels), io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return np.asarray(Image.frombytes(picture.mode, picture.size, file.getvalue(), "jpeg", picture.mode, ""))
