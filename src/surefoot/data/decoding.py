"""Read a whole collection into memory, in threads, with a progress bar."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import torch
from torch import Tensor

from ..progress import progress_bar
from .reading import BadImage
from .streaming import Pictures

logger = logging.getLogger("surefoot")
PATIENCE = 2000  # images; fewer need no progress bar
CHUNK = 256


def decode_all(pictures: Pictures, indices: Tensor, channels: int, skip_bad_images: bool) -> tuple[Tensor, Tensor]:
    """The images at `indices` as one uint8 tensor, and which of them could be read.

    Threads, not processes: Pillow decodes without Python's lock, and the pixels need not be copied.
    """
    images = torch.empty(len(indices), channels, *pictures.size, dtype=torch.uint8)
    good = torch.ones(len(indices), dtype=torch.bool)
    bad: list[BadImage] = []
    with (
        ThreadPoolExecutor(os.cpu_count()) as pool,
        progress_bar(show=len(indices) >= PATIENCE) as bar,
    ):
        task = bar.add_task("reading images", total=len(indices))
        numbers = iter(enumerate(indices.tolist()))
        while chunk := list(islice(numbers, CHUNK)):
            for (place, _), (_, found) in zip(chunk, pool.map(pictures.__getitem__, [i for _, i in chunk]), strict=True):
                if isinstance(found, BadImage):
                    if not skip_bad_images:
                        raise found
                    bad.append(found)
                    good[place] = False
                else:
                    images[place] = found
            bar.advance(task, len(chunk))
    if bad:
        logger.warning("%d images cannot be read and are left out; the first is %s", len(bad), bad[0].name)
    return images, good
