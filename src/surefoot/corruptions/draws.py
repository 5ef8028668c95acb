"""Random numbers that belong to an image, not to its batch, device or process."""

from __future__ import annotations

import torch
from torch import Tensor

from ..seeds import derive


class ImageDraws:
    """Draws for each image of a batch, seeded by (seed, name, image index), made on the CPU.

    Severity is no key: an image's severities see the same draws, so they are paired.
    One generator is reseeded for each image, the only loop over images here.
    """

    def __init__(self, seed: int, name: str, indices: Tensor) -> None:
        self.seeds = [derive(seed, name, index) for index in indices.tolist()]

    def normal(self, shape: tuple[int, ...]) -> Tensor:
        """Standard normal numbers, images x shape."""
        out = torch.empty(len(self.seeds), *shape)
        generator = torch.Generator()
        for row, seed in zip(out, self.seeds, strict=True):
            row.normal_(generator=generator.manual_seed(seed))
        return out
