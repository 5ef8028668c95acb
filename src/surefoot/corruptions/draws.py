"""Random numbers that belong to an image, not to its batch, device or process."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..seeds import derive


class ImageDraws:
    """Draws for each image of a batch, seeded by (seed, name, image index), made on the CPU.

    Severity is no key: an image's severities see the same draws, so they are paired. A corruption that needs two sets of
    numbers tells them apart by `purpose`. One generator is reseeded for each image, the only loop over images here.
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
        generator = torch.Generator()
        extra = (purpose,) if purpose else ()
        for row, key in zip(out, self.keys, strict=True):
            fill(row, generator=generator.manual_seed(derive(*key, *extra)))
        return out
