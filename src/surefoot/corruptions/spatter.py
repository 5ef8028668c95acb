"""Spatter: drops of water that shine at their rims, or mud."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from ..imageops.blur import gaussian_blur
from ..imageops.canny import canny
from ..imageops.colour import grey
from ..imageops.distance import distance_to
from ..imageops.separable import apply, filter_matrix, fold
from ..seeds import ImageDraws
from ..types import Images
from .rounding import SLACK
from .severities import Constants

WATER = (175 / 255, 238 / 255, 238 / 255)
MUD = (63 / 255, 42 / 255, 20 / 255)
RIMS = (50, 150)  # Canny's thresholds
FARTHEST = 20  # pixels from a rim; beyond, the relief is flat
OPAQUE = 0.8  # mud that covers less is left out


def spatter(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """Water adds light of a pale turquoise, mud blends in brown."""
    layer = draws.normal((1, *images.shape[2:])).to(images).mul_(constants["std"]).add_(constants["mean"])
    layer = gaussian_blur(layer, constants["sigma"])
    layer = layer.masked_fill_(layer < constants["threshold"], 0)
    if constants["mud"]:
        cover = gaussian_blur((layer > constants["threshold"]).to(images), constants["strength"])
        cover = cover.masked_fill_(cover < OPAQUE, 0)
        return torch.lerp(images, tint(MUD, images), cover)
    drops = (layer.clamp(max=1) * 255).floor_()
    shine = drops * relief(drops)
    shine *= constants["strength"] / shine.amax((2, 3), keepdim=True).clamp_min(1e-6)
    return torch.addcmul(images, shine, tint(WATER, images))


def relief(drops: Tensor) -> Tensor:
    """The distance from the rims of 8-bit drops, with its histogram equalised, lit from the top left: levels in [0, 255]."""
    distance = box3(distance_to(canny(drops, *RIMS), FARTHEST).to(drops)).add_(SLACK).floor_()
    return box3(emboss(equalised(distance)).clamp_(0, 255)).round_()


def equalised(levels: Tensor) -> Tensor:
    """Spread the levels of each image (whole, at most `FARTHEST`) over [0, 255] so that all are about equally common."""
    flat = levels.flatten(1).long()
    counts = levels.new_zeros(len(levels), FARTHEST + 1).scatter_add_(1, flat, torch.ones_like(levels.flatten(1)))
    cumulated = counts.cumsum(1)
    lowest = counts.gather(1, flat.amin(1, keepdim=True))
    spread = (cumulated - lowest).mul_(255).div_((flat.shape[1] - lowest).clamp_min(1)).round_()
    return spread.gather(1, flat).view_as(levels)


def box3(levels: Tensor) -> Tensor:
    """The mean of 3 x 3 pixels, borders mirrored."""
    return apply(box_matrix(levels.shape[2]), levels, box_matrix(levels.shape[3]))


@lru_cache(maxsize=32)
def box_matrix(side: int) -> Tensor:
    """The mean of three pixels."""
    return filter_matrix(torch.full((3,), 1 / 3), side, "mirror")


def emboss(levels: Tensor) -> Tensor:
    """2 * (bottom right - top left) + bottom + right - top - left + centre, borders mirrored: light from the top left."""
    height, width = levels.shape[2:]
    rows, columns = (fold(torch.arange(-1, side + 1), side, "mirror").to(levels.device) for side in (height, width))
    wide = levels.index_select(2, rows).index_select(3, columns)

    def at(row: int, column: int) -> Tensor:
        return wide[..., row : row + height, column : column + width]

    lit = levels + at(1, 2) - at(1, 0) + at(2, 1) - at(0, 1)
    return lit.add_(at(2, 2), alpha=2).sub_(at(0, 0), alpha=2)


def tint(colour: tuple[float, float, float], images: Images) -> Tensor:
    """A colour, or its grey for images of one channel, shaped to broadcast over images."""
    shaped = images.new_tensor(colour).view(1, 3, 1, 1)
    return shaped if images.shape[1] == 3 else grey(shaped)
