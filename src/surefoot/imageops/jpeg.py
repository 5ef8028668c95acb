"""What JPEG compression does to pixels, as tensor arithmetic: every image of a batch with its own quality, no files.

Colours to YCbCr, chroma at half size (4:2:0), 8 x 8 cosine transforms divided by the tables of ITU-T T.81 (annex K) scaled as
the Independent JPEG Group's encoder does, rounded, and back. Entropy coding changes no pixel and is left out.
"""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import require
from ..types import Images

LUMA = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
CHROMA = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)
TO_YCBCR = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))
TO_RGB = ((1.0, 0.0, 1.402), (1.0, -0.344136, -0.714136), (1.0, 1.772, 0.0))


def jpeg(images: Images, quality: Tensor) -> Images:
    """Compress and decompress a batch of one or three channels, each image at its own quality in 1 to 100."""
    require(images.shape[1] in (1, 3), "images", "of 1 or 3 channels", images.shape[1])
    require(quality.shape == (len(images),), "quality", f"one for each of {len(images)} images", tuple(quality.shape))
    if images.numel() == 0:
        return images.clone()
    height, width = images.shape[2:]
    levels = (images.clamp(0, 1) * 255).round()
    padded = F.pad(levels, (0, -width % 16, 0, -height % 16), mode="replicate")
    if images.shape[1] == 1:
        out = quantise(padded, LUMA, quality)
    else:
        luma, chroma = mix(padded, TO_YCBCR).round().split((1, 2), 1)
        luma = quantise(luma, LUMA, quality)
        chroma = quantise(F.avg_pool2d(chroma, 2).round() + 128, CHROMA, quality) - 128
        chroma = F.interpolate(chroma, scale_factor=2, mode="bilinear", align_corners=False).round()
        out = mix(torch.cat([luma, chroma], 1), TO_RGB).round().clamp(0, 255)
    return out[:, :, :height, :width] / 255


def quantise(planes: Tensor, table: tuple[tuple[int, ...], ...], quality: Tensor) -> Tensor:
    """Round the cosine coefficients of every 8 x 8 block of levels to multiples of the scaled table; levels again."""
    scale = torch.where(quality < 50, 5000 / quality.double(), 200 - 2 * quality.double()).floor().view(-1, 1, 1)
    steps = ((torch.tensor(table, dtype=torch.float64, device=quality.device) * scale + 50) / 100).floor()
    steps = steps.clamp(1, 255).to(planes)[:, None, None, None]
    cosines = cosine_matrix().to(planes)
    blocks = (planes - 128).unflatten(3, (-1, 8)).unflatten(2, (-1, 8)).transpose(3, 4)
    rounded = (cosines @ blocks @ cosines.mT / steps).round() * steps
    restored: Tensor = cosines.mT @ rounded @ cosines
    return (restored.transpose(3, 4).flatten(4, 5).flatten(2, 3) + 128).round().clamp(0, 255)


def mix(images: Images, matrix: tuple[tuple[float, ...], ...]) -> Images:
    """Multiply the channels of every pixel by a 3 x 3 matrix."""
    return F.conv2d(images, torch.tensor(matrix, dtype=images.dtype, device=images.device)[:, :, None, None])


@cache
def cosine_matrix() -> Tensor:
    """The orthonormal discrete cosine transform of 8 samples."""
    k, n = torch.arange(8, dtype=torch.float64)[:, None], torch.arange(8, dtype=torch.float64)
    rows = torch.cos(math.pi * (2 * n + 1) * k / 16) / 2
    rows[0] /= math.sqrt(2)
    return rows
