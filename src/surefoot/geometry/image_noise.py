"""Gaussian noise that belongs to an image and a draw, so that no result depends on how images were batched."""

from __future__ import annotations

import torch
from torch import Tensor

from ..seeds import derive
from ..types import Images


def base_seed(generator: torch.Generator | None) -> int:
    """One number from the caller's generator (torch's own without one), from which all noise of a measurement is derived."""
    device = "cpu" if generator is None else generator.device
    return int(torch.randint(2**62, (), generator=generator, device=device))


def gaussian(like: Images, first: int, draw: int, seed: int) -> Tensor:
    """Draw number `draw` of N(0, 1) for the images from place `first` on, seeded by (seed, place, draw)."""
    noise = torch.empty(like.shape, dtype=like.dtype)
    source = torch.Generator()
    for place, row in enumerate(noise, first):
        row.normal_(generator=source.manual_seed(derive(seed, place, draw)))
    return noise.to(like.device)


def signs(like: Images, first: int, draw: int, seed: int) -> Tensor:
    """As `gaussian`, but +1 or -1."""
    return torch.where(gaussian(like, first, draw, seed) < 0, -1.0, 1.0).to(like.dtype)
