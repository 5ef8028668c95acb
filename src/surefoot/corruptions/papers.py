"""What papers beside the benchmarks test with: uniform noise, occlusion, down- and up-sampling, stripes.

Sizes are shares of the image, after 20 patches of 70 px and 10 stripes of 6 px at 400 x 500 (discriminative noise, Table 4).
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from ..imageops.filters import apply, resize_matrix
from ..seeds import ImageDraws
from ..types import Images
from .severities import Constants

MOST = 25  # patches or stripes that are drawn, whatever the severity, so that severities are paired


def uniform_noise(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """x + U(-level, level) at every pixel and channel."""
    noise = draws.uniform(tuple(images.shape[1:])).to(images).mul_(2).sub_(1)
    return torch.add(images, noise, alpha=constants["level"])


def occlusion(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Black squares, their side a share of the image's shorter one, at random places inside the image."""
    height, width = images.shape[2:]
    side = max(1, round(constants["side"] * min(height, width)))
    corners = draws.uniform((MOST, 2))[:, : int(constants["patches"])]
    rows, columns = covered(corners[..., 0], side, height), covered(corners[..., 1], side, width)
    hidden = torch.bmm(rows.float().mT, columns.float()) > 0
    return images.masked_fill(hidden[:, None].to(images.device), 0)


def stripes(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Black vertical stripes, their width a share of the image's, at random places."""
    width = images.shape[3]
    thick = max(1, round(constants["width"] * width))
    hidden = covered(draws.uniform((MOST,))[:, : int(constants["stripes"])], thick, width).any(1)
    return images.masked_fill(hidden[:, None, None].to(images.device), 0)


def covered(chances: Tensor, size: int, side: int) -> Tensor:
    """Which of `side` pixels lie in an interval of `size` whose start is chosen by a number in [0, 1): ... x side."""
    starts = (chances * (side - size + 1)).floor_()[..., None]
    pixels = torch.arange(side)
    return (pixels >= starts) & (pixels < starts + size)


def down_up_sampling(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Bilinear down by a factor and up again."""
    rows, columns = (there_and_back(side, max(1, round(side / constants["factor"]))) for side in images.shape[2:])
    return apply(rows, images, columns)


@lru_cache(maxsize=32)
def there_and_back(side: int, small: int) -> Tensor:
    """Down to a small side and up again, in one matrix."""
    return resize_matrix(small, side) @ resize_matrix(side, small)
