"""Separable filters and resizings as products with two matrices: rows @ image @ columns.

Borders are part of the matrix, so that any kernel fits any image, and small images cost a few microseconds.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from ..types import Images

BORDERS = ("edge", "mirror", "reflect")  # aaa|abc, cb|abc (the edge is not repeated), ba|abc


def apply(rows: Tensor, images: Images, columns: Tensor) -> Images:
    """rows (new height x height) @ images @ columns (new width x width) transposed."""
    return torch.matmul(torch.matmul(rows.to(images), images), columns.to(images).mT)


def filter_matrix(taps: Tensor, side: int, border: str) -> Tensor:
    """The matrix that weighs each pixel's neighbours with an odd number of taps (float64)."""
    radius = len(taps) // 2
    places = fold(torch.arange(side)[:, None] + torch.arange(-radius, radius + 1), side, border)
    return torch.zeros(side, side, dtype=torch.float64).scatter_add_(1, places, taps.double().expand(side, -1))


def fold(places: Tensor, side: int, border: str) -> Tensor:
    """Places beyond the border, led back into [0, side)."""
    if border == "edge" or side == 1:
        return places.clamp(0, side - 1)
    period = 2 * side - 2 if border == "mirror" else 2 * side
    wrapped = places.remainder(period)
    return torch.where(wrapped < side, wrapped, (period if border == "mirror" else period - 1) - wrapped)


@lru_cache(maxsize=256)
def zoom_matrix(side: int, factor: float) -> Tensor:
    """Enlarge the middle by a factor of at least 1, as the published generators do: cut, enlarge corner on corner, trim.

    The middle is the ceil(side / factor) pixels from floor((side - that) / 2); they become n = round(that * factor) pixels, of
    which pixel k lies at k * (that - 1) / (n - 1); kept are `side` pixels from floor((n - side) / 2).
    """
    middle = math.ceil(side / factor)
    enlarged = max(round(middle * factor), side)
    kept = torch.arange(side, dtype=torch.float64) + (enlarged - side) // 2
    return bilinear_matrix(kept * (middle - 1) / max(enlarged - 1, 1) + (side - middle) // 2, side)


def zoom_sum(images: Images, factors: tuple[float, ...]) -> Images:
    """The sum of the images zoomed by each factor.

    Each pixel comes from its neighbourhood alone, so that blocks of the matrices are enough: a quarter of the work at 224 px.
    """
    rows, columns = (tuple((a, b, c, d, m.to(images)) for a, b, c, d, m in zoom_blocks(n, factors)) for n in images.shape[2:])
    result = torch.empty_like(images)
    for left, right, first, last, across in columns:
        wide = images[..., first:last] @ across.flatten(0, 1).mT
        wide = wide.unflatten(3, (len(factors), right - left)).movedim(3, 2)  # batch x channels x factors x height x width
        for top, bottom, low, high, down in rows:
            tall = wide[:, :, :, low:high].flatten(2, 3)
            result[..., top:bottom, left:right] = down.transpose(0, 1).flatten(1) @ tall
    return result


@lru_cache(maxsize=32)
def zoom_blocks(side: int, factors: tuple[float, ...], size: int = 32) -> list[tuple[int, int, int, int, Tensor]]:
    """For each block of pixels: its begin and end, those of what it is made from, and factors x own pixels x their pixels."""
    matrices = torch.stack([zoom_matrix(side, factor) for factor in factors])
    blocks = []
    for begin in range(0, side, size):
        rows = matrices[:, begin : begin + size]
        used = rows.amax((0, 1)).nonzero()[:, 0]
        low, high = int(used[0]), int(used[-1]) + 1
        blocks.append((begin, begin + rows.shape[1], low, high, rows[:, :, low:high].contiguous()))
    return blocks


@lru_cache(maxsize=64)
def resize_matrix(side: int, new_side: int) -> Tensor:
    """Bilinear resizing with pixel centres at halves and no smoothing, as `F.interpolate` does it."""
    return bilinear_matrix((torch.arange(new_side, dtype=torch.float64) + 0.5) * side / new_side - 0.5, side)


def bilinear_matrix(places: Tensor, side: int) -> Tensor:
    """One row for each place, with the weights of its two neighbours."""
    places = places.clamp(0, side - 1)
    below = places.floor().clamp(max=max(side - 2, 0))
    share = (places - below)[:, None]
    matrix = torch.zeros(len(places), side, dtype=torch.float64)
    matrix.scatter_add_(1, below.long()[:, None], 1 - share)
    matrix.scatter_add_(1, (below.long()[:, None] + 1).clamp(max=side - 1), share)
    return matrix


def low_rank(kernel: Tensor, tolerance: float = 1e-6) -> list[tuple[Tensor, Tensor]]:
    """A kernel as a sum of (column taps, row taps), as few as reproduce it."""
    left, sizes, right = torch.linalg.svd(kernel.double())
    kept = int((sizes > tolerance * sizes[0]).sum())
    return [(left[:, n] * math.sqrt(sizes[n]), right[n] * math.sqrt(sizes[n])) for n in range(kept)]
