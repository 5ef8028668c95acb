"""Filters of whole batches: Gaussian blur by matrices or by a small kernel, convolution by FFT, fast separable sums."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import require
from ..types import Images
from .tone import per_image

# Separable filters and resizings as products with two matrices: rows @ image @ columns.
#
# Borders are part of the matrix, so that any kernel fits any image, and small images cost a few microseconds.


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
    parts = []
    for begin in range(0, len(matrix), BLOCK):
        rows = matrix[begin : begin + BLOCK]
        used = rows.abs().amax(0).nonzero()[:, 0].tolist() or [0]
        old = slice(used[0], used[-1] + 1)
        parts.append((slice(begin, begin + len(rows)), old, rows[:, old].to(device, dtype).contiguous()))
    return parts


def filter_matrix(taps: Tensor, side: int, border: str) -> Tensor:
    """The matrix that weighs each pixel's neighbours with an odd number of taps (float64)."""
    radius = len(taps) // 2
    indices = fold(torch.arange(side)[:, None] + torch.arange(-radius, radius + 1), side, border)
    return torch.zeros(side, side, dtype=torch.float64).scatter_add_(1, indices, taps.double().expand(side, -1))


def fold(indices: Tensor, side: int, border: str) -> Tensor:
    """Places beyond the border, led back into [0, side)."""
    if border == "edge" or side == 1:
        return indices.clamp(0, side - 1)
    period = 2 * side - 2 if border == "mirror" else 2 * side
    wrapped = indices.remainder(period)
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
    parts = []
    for begin in range(0, side, BLOCK):
        rows = whole[begin : begin + BLOCK].unflatten(1, (len(factors), side)).transpose(0, 1)
        used = rows.amax((0, 1)).nonzero()[:, 0]
        old = slice(int(used[0]), int(used[-1]) + 1)
        parts.append((slice(begin, begin + rows.shape[1]), old, rows[:, :, old].to(device, dtype).contiguous()))
    return parts


@lru_cache(maxsize=64)
def resize_matrix(side: int, new_side: int) -> Tensor:
    """Bilinear resizing with pixel centres at halves and no smoothing, as `F.interpolate` does it."""
    return bilinear_matrix((torch.arange(new_side, dtype=torch.float64) + 0.5) * side / new_side - 0.5, side)


def bilinear_matrix(coordinates: Tensor, side: int) -> Tensor:
    """One row for each coordinate, with the weights of its two neighbours."""
    coordinates = coordinates.clamp(0, side - 1)
    below = coordinates.floor().clamp(max=max(side - 2, 0))
    share = (coordinates - below)[:, None]
    matrix = torch.zeros(len(coordinates), side, dtype=torch.float64)
    matrix.scatter_add_(1, below.long()[:, None], 1 - share)
    matrix.scatter_add_(1, (below.long()[:, None] + 1).clamp(max=side - 1), share)
    return matrix


def low_rank(kernel: Tensor, tolerance: float = 1e-6) -> list[tuple[Tensor, Tensor]]:
    """A kernel as a sum of (column taps, row taps), as few as reproduce it."""
    left, sizes, right = torch.linalg.svd(kernel.double())
    kept = int((sizes > tolerance * sizes[0]).sum())
    return [(left[:, n] * math.sqrt(sizes[n]), right[n] * math.sqrt(sizes[n])) for n in range(kept)]


# Gaussian blur of whole batches, as a product with one matrix for the rows and one for the columns.


def gaussian_kernel(sigma: float, truncate: float = 4.0) -> Tensor:
    """Taps of a normalised Gaussian out to `truncate` standard deviations (odd count)."""
    radius = int(truncate * sigma + 0.5)
    offsets = torch.arange(-radius, radius + 1, dtype=torch.float64)
    taps = torch.exp(-0.5 * (offsets / sigma) ** 2)
    return taps / taps.sum()


@lru_cache(maxsize=64)
def gaussian_matrix(side: int, sigma: float, truncate: float = 4.0, border: str = "edge") -> Tensor:
    """The Gaussian as a side x side matrix with one of separable's borders; sigma 0 changes nothing."""
    taps = gaussian_kernel(sigma, truncate) if sigma > 0 else torch.ones(1, dtype=torch.float64)
    return filter_matrix(taps, side, border)


def gaussian_blur(images: Images, sigma: float, truncate: float = 4.0) -> Images:
    """Blur every channel with the same Gaussian; edge pixels are repeated beyond the border."""
    if int(truncate * sigma + 0.5) == 0 or images.numel() == 0:
        return images.clone()
    rows, columns = (gaussian_matrix(side, sigma, truncate) for side in images.shape[2:])
    return apply(rows, images, columns)


# Gaussian blur with a small kernel and a standard deviation for each image, as torchvision's `gaussian_blur` for one.


def small_blur(images: Images, sigma: Tensor, size: int = 3) -> Images:
    """Blur each image with a `size` x `size` Gaussian of its own sigma; the image is reflected at its border.

    Sums of shifted slices: a grouped convolution with a kernel for each image is many times slower on a CPU.
    """
    require(size % 2 == 1 and size > 0, "size", "odd and positive", size)
    radius = size // 2
    require(min(images.shape[2:]) > radius, "images", f"larger than {radius} pixels", tuple(images.shape[2:]))
    offsets = torch.arange(radius + 1, dtype=images.dtype, device=images.device)
    taps = torch.exp(-0.5 * (offsets / per_image(sigma, images).flatten(1)) ** 2)
    taps = taps / (taps[:, :1] + 2 * taps[:, 1:].sum(1, keepdim=True))
    for dimension in (2, 3):
        padding = (0, 0, radius, radius) if dimension == 2 else (radius, radius, 0, 0)
        padded, length = F.pad(images, padding, mode="reflect"), images.shape[dimension]
        images = images * taps[:, 0].view(-1, 1, 1, 1)
        for k in range(1, radius + 1):
            pair = padded.narrow(dimension, radius - k, length) + padded.narrow(dimension, radius + k, length)
            images = images.addcmul_(pair, taps[:, k].view(-1, 1, 1, 1))
    return images


# Convolution with large kernels, or with another kernel for each image, by the fast Fourier transform.


def correlate(padded: Images, kernels: Tensor) -> Images:
    """out[y, x] = sum of kernel[i, j] * padded[y + i, x + j], where the kernel lies inside the padded images.

    `kernels` is 1 or batch x 1 x height x width.
    """
    size = tuple(good_length(side) for side in padded.shape[2:])
    height, width = (side - k + 1 for side, k in zip(padded.shape[2:], kernels.shape[2:], strict=True))
    spectrum = torch.fft.rfft2(padded, s=size)
    spectrum *= torch.fft.rfft2(kernels.to(padded), s=size).conj()
    whole: Images = torch.fft.irfft2(spectrum, s=size)
    return whole[..., :height, :width]


def good_length(side: int) -> int:
    """The next even number whose prime factors are 2, 3 and 5: transforms of such lengths are quick."""
    length = side + side % 2
    while True:
        rest = length
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
        length += 2
