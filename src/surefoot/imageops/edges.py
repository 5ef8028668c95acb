"""Edges, and how far each pixel is from them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

# Canny's edge detector for whole batches of 8-bit levels.
#
# Canny 1986, "A computational approach to edge detection", in the form of the published corruption generators: Sobel gradients
# with repeated borders, |gx| + |gy| as their size, thinned across the edge in four directions, and weak edges that touch strong
# ones kept.


TAN_22 = 2**0.5 - 1  # below this slope a gradient counts as horizontal, above its inverse as vertical


def canny(levels: Tensor, low: float, high: float) -> Tensor:
    """Where the edges are (bool), in batch x 1 x height x width levels from 0 to 255.

    Edges steeper than `high` are kept, and those steeper than `low` that are joined to them by a path of such.
    """
    across, down = sobel(levels)
    steep = across.abs() + down.abs()
    candidates = (steep > low) & thinned(steep, across, down)
    edges = candidates & (steep > high)
    while True:
        grown = dilated(edges) & candidates
        if torch.equal(grown, edges):
            return edges
        edges = grown


def dilated(marked: Tensor) -> Tensor:
    """Marked pixels and their eight neighbours; many times as fast as a maximum over windows."""
    for dim in (2, 3):
        wider, last = marked.clone(), marked.shape[dim] - 1
        wider.narrow(dim, 1, last).logical_or_(marked.narrow(dim, 0, last))
        wider.narrow(dim, 0, last).logical_or_(marked.narrow(dim, 1, last))
        marked = wider
    return marked


def sobel(levels: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients across and down, borders repeated."""
    padded = F.pad(levels, (1, 1, 1, 1), mode="replicate")
    rows = padded[..., :-2, :] + 2 * padded[..., 1:-1, :] + padded[..., 2:, :]
    columns = padded[..., :-2] + 2 * padded[..., 1:-1] + padded[..., 2:]
    return rows[..., 2:] - rows[..., :-2], columns[..., 2:, :] - columns[..., :-2, :]


def thinned(steep: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Which pixels are at least as steep as their two neighbours along the gradient; of two equal ones, the first."""
    padded = F.pad(steep, (1, 1, 1, 1))
    height, width = steep.shape[2:]

    def at(row: int, column: int) -> Tensor:
        return padded[..., 1 + row : 1 + row + height, 1 + column : 1 + column + width]

    horizontal = (steep > at(0, -1)) & (steep >= at(0, 1))
    vertical = (steep > at(-1, 0)) & (steep >= at(1, 0))
    falling = (steep > at(-1, -1)) & (steep > at(1, 1))
    rising = (steep > at(-1, 1)) & (steep > at(1, -1))
    sideways, upright = down.abs() < TAN_22 * across.abs(), down.abs() > across.abs() / TAN_22
    diagonal = torch.where((across < 0) ^ (down < 0), rising, falling)
    return torch.where(sideways, horizontal, torch.where(upright, vertical, diagonal))


# How far each pixel is from the nearest marked one, for whole batches.


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


def closer(distances: Tensor, candidates: Tensor, offset: int, dim: int) -> None:
    """Lower the distances to the candidates that lie `offset` before and after it."""
    count = distances.shape[dim] - offset
    for to, origin in ((offset, 0), (0, offset)):
        target = distances.narrow(dim, to, count)
        torch.minimum(target, candidates.narrow(dim, origin, count), out=target)
