"""How far each pixel is from the nearest marked one, for whole batches."""

from __future__ import annotations

import torch
from torch import Tensor


def distance_to(marked: Tensor, limit: int) -> Tensor:
    """Euclidean distances to the nearest true value in the last two dimensions, at most `limit` (float32).

    Along the rows by steps of 1, 2, 4, ...; then down the columns by trying every offset that could still be nearer.
    """
    height, width = marked.shape[-2:]
    along = torch.full(marked.shape, float(limit), device=marked.device).masked_fill_(marked, 0)
    step = 1
    while step < min(limit, width):
        closer(along, along + step, step, -1)
        step *= 2
    along.clamp_(max=limit).square_()
    nearest = along.clone()
    for offset in range(1, min(limit, height)):
        if offset**2 >= float(nearest.max()):
            break
        closer(nearest, along + offset**2, offset, -2)
    return nearest.sqrt_()


def closer(found: Tensor, candidates: Tensor, offset: int, dim: int) -> None:
    """Lower what was found to the candidates that lie `offset` before and after it."""
    count = found.shape[dim] - offset
    for to, origin in ((offset, 0), (0, offset)):
        place = found.narrow(dim, to, count)
        torch.minimum(place, candidates.narrow(dim, origin, count), out=place)
