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


SMALL = 32 * 32  # pixels, up to which a sum of zooms is one matrix
BLOCK = 32  # rows of a matrix that are worked on together
Blocks = list[tuple[slice, slice, Tensor]]


def apply(rows: Tensor, images: Images, columns: Tensor) -> Images:
    """rows (new height x height) @ images @ columns (new width x width) transposed.

    A pixel comes from its neighbourhood alone, so that blocks of the matrices are enough: a third of the time at 224 px.
    """
    wide = images.new_empty(*images.shape[:-1], len(columns))
    for new, old, part in blocks(columns, images.dtype, images.device):
        wide[..., new] = images[..., old] @ part.mT
    result = images.new_empty(*images.shape[:-2], len(rows), len(columns))
    for new, old, part in blocks(rows, images.dtype, images.device):
        result[..., new, :] = part @ wide[..., old, :]
    return result


@lru_cache(maxsize=64)
def blocks(matrix: Tensor, dtype: torch.dtype, device: torch.device) -> Blocks:
    """The rows of a matrix in blocks: which rows, which columns they use, and the numbers there. Kept for each object."""
    found = []
    for begin in range(0, len(matrix), BLOCK):
        rows = matrix[begin : begin + BLOCK]
        used = rows.abs().amax(0).nonzero()[:, 0].tolist() or [0]
        old = slice(used[0], used[-1] + 1)
        found.append((slice(begin, begin + len(rows)), old, rows[:, old].to(device, dtype).contiguous()))
    return found


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
    """The sum of the images zoomed by each factor, block by block as in `apply`; for small images in one product."""
    if images.shape[2] * images.shape[3] <= SMALL:
        whole = zoom_product(*images.shape[2:], factors, images.dtype, images.device)
        return (images.flatten(2) @ whole).view_as(images)
    rows, columns = (zoom_blocks(side, factors, images.dtype, images.device) for side in images.shape[2:])
    result = torch.empty_like(images)
    for across, before, part in columns:
        wide = images[..., before] @ part.flatten(0, 1).mT
        wide = wide.unflatten(3, part.shape[:2]).movedim(3, 2)  # batch x channels x factors x height x width
        for down, above, own in rows:
            result[..., down, across] = own.transpose(0, 1).flatten(1) @ wide[:, :, :, above].flatten(2, 3)
    return result


@lru_cache(maxsize=32)
def zoom_product(height: int, width: int, factors: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """The sum over factors as one matrix from all pixels to all pixels."""
    whole = torch.zeros(height * width, height * width, dtype=torch.float64)
    for factor in factors:
        whole += torch.kron(zoom_matrix(height, factor), zoom_matrix(width, factor))
    return whole.mT.to(device, dtype).contiguous()


@lru_cache(maxsize=32)
def zoom_blocks(side: int, factors: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Blocks:
    """The matrices of all factors in blocks of rows: which rows, which columns they use, and factors x rows x columns."""
    whole = torch.cat([zoom_matrix(side, factor) for factor in factors], 1)  # a row for each pixel
    found = []
    for begin in range(0, side, BLOCK):
        rows = whole[begin : begin + BLOCK].unflatten(1, (len(factors), side)).transpose(0, 1)
        used = rows.amax((0, 1)).nonzero()[:, 0]
        old = slice(int(used[0]), int(used[-1]) + 1)
        found.append((slice(begin, begin + rows.shape[1]), old, rows[:, :, old].to(device, dtype).contiguous()))
    return found


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
