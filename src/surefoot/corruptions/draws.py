"""Random numbers that belong to an image, not to its batch, device or process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from ..seeds import derive

THREADED = 1 << 15  # numbers for an image; for fewer, threads cost more than they gain


class ImageDraws:
    """Draws for each image of a batch, seeded by (seed, name, image index), made on the CPU.

    Severity is no key: an image's severities see the same draws, so they are paired. A corruption that needs two sets of
    numbers tells them apart by `purpose`. A generator is reseeded for each image, the only loop over images here.
    """

    def __init__(self, seed: int, name: str, indices: Tensor) -> None:
        self.keys = [(seed, name, index) for index in indices.tolist()]

    def normal(self, shape: tuple[int, ...], purpose: str = "") -> Tensor:
        """Standard normal numbers, images x shape."""
        return self._fill(Tensor.normal_, shape, purpose)

    def uniform(self, shape: tuple[int, ...], purpose: str = "") -> Tensor:
        """Numbers in [0, 1), images x shape."""
        return self._fill(Tensor.uniform_, shape, purpose)

    def _fill(self, fill: Callable[..., Tensor], shape: tuple[int, ...], purpose: str) -> Tensor:
        out = torch.empty(len(self.keys), *shape)
        extra = (purpose,) if purpose else ()

        def part(rows: slice) -> None:
            generator = torch.Generator()
            for row, key in zip(out[rows], self.keys[rows], strict=True):
                fill(row, generator=generator.manual_seed(derive(*key, *extra)))

        workers = torch.get_num_threads() if out[:1].numel() >= THREADED else 1
        if workers == 1:
            part(slice(None))
        else:
            with ThreadPoolExecutor(workers) as threads:
                deque(threads.map(part, [slice(begin, None, workers) for begin in range(workers)]), maxlen=0)
        return out
