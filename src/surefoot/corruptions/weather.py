"""Weather: fog, frost, snow and spatter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from ..data.image_files import SUFFIXES, read_image, to_tensor
from ..errors import SurefootError
from ..imageops.edges import canny, distance_to
from ..imageops.filters import apply, filter_matrix, fold, gaussian_blur, zoom_matrix
from ..imageops.tone import grey
from ..seeds import ImageDraws
from ..types import Images
from .arguments import find_photographs
from .blur import along
from .digital import SLACK, to_levels
from .frost_texture import windows
from .severities import Constants

# Fog: a fractal haze, another for each image.


COARSEST = 100.0  # the amplitude of the first midpoint


def fog(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """(x + amount * plasma) * max(x) / (max(x) + amount)."""
    height, width = images.shape[2:]
    size = 1 << (max(height, width) - 1).bit_length()
    haze = plasma(draws.uniform((size * size - 1,)).to(images), size, constants["decay"])
    brightest = images.amax((1, 2, 3), keepdim=True)
    amount = constants["amount"]
    return torch.add(images, haze[:, None, :height, :width], alpha=amount).mul_(brightest / (brightest + amount))


def plasma(uniform: Tensor, size: int, decay: float) -> Tensor:
    """Diamond-square fractals in [0, 1] from batch x (size * size - 1) numbers in [0, 1): batch x size x size.

    Each new point is the mean of its 4 neighbours, wrapped at the borders, plus w * U(-w, w); each step divides w by `decay`.
    """
    corners = uniform.new_zeros(len(uniform), 1, 1)
    amplitude, used = COARSEST, 0
    while (side := corners.shape[1]) < size:
        part = uniform[:, used : used + 3 * side * side].unflatten(1, (3, side, side))
        middle, across, down = ((part - 0.5) * (2 * amplitude**2)).unbind(1)
        right = corners + corners.roll(-1, 2)
        middle = torch.add(middle, right + right.roll(-1, 1), alpha=0.25)
        across = torch.add(across, right + (middle + middle.roll(1, 1)), alpha=0.25)
        down = torch.add(down, (corners + corners.roll(-1, 1)) + (middle + middle.roll(1, 2)), alpha=0.25)
        upper, lower = torch.stack([corners, across], 3), torch.stack([down, middle], 3)
        corners = torch.stack([upper.flatten(2), lower.flatten(2)], 2).view(len(uniform), 2 * side, 2 * side)
        used += 3 * side * side
        amplitude /= decay
    low, high = corners.amin((1, 2), keepdim=True), corners.amax((1, 2), keepdim=True)
    return (corners - low) / (high - low).clamp_min(torch.finfo(corners.dtype).tiny)


# Frost: a random crop of a frosted window, mixed with the image.
#
# The benchmarks' five photographs are not ours to ship. `frost_texture` draws windows with their statistics and their harm;
# `frost_photographs` takes real ones from a folder, or from an installed `imagecorruptions`.


CHOICE = 5
_FOLDER: ContextVar[Path | None] = ContextVar("frost", default=None)


def frost(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """image_weight * x + frost_weight * frost."""
    size = (images.shape[2], images.shape[3])
    textures = photographs(_FOLDER.get(), constants["texture_scale"], size)
    pieces = crops(draws.uniform((3,)), size, textures)
    if images.shape[1] == 1:
        pieces = grey(pieces)
    return torch.add(images * constants["image_weight"], pieces.to(images), alpha=constants["frost_weight"])


@contextmanager
def frost_photographs(source: str | Path) -> Iterator[None]:
    """Inside the block, frost is cut from the photographs in a folder, or from those of the package `imagecorruptions`."""
    token = _FOLDER.set(find_photographs(source))
    try:
        yield
    finally:
        _FOLDER.reset(token)


def photographs_in_use() -> str | None:
    """The folder that frost is cut from, or None for our own texture."""
    folder = _FOLDER.get()
    return None if folder is None else str(folder)


@lru_cache(maxsize=8)
def photographs(folder: Path | None, scale: float, size: tuple[int, int]) -> tuple[Tensor, ...]:
    """The photographs, or our own windows, shrunk by `scale` without smoothing (3 x height x width, float).

    What would not hold a crop is enlarged again.
    """
    shrunk = []
    for photograph in windows() if folder is None else read_photographs(folder):
        needed = max(own / side for own, side in zip(size, photograph.shape[1:], strict=True))
        sides = [max(own, round(side * max(scale, needed))) for side, own in zip(photograph.shape[1:], size, strict=True)]
        shrunk.append(F.interpolate(photograph[None], sides, mode="bilinear", align_corners=False)[0])
    return tuple(shrunk)


def read_photographs(folder: Path) -> list[Tensor]:
    """The first five pictures of a folder by name: the published generators have six and choose among five."""
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)[:CHOICE]
    if not paths:
        raise SurefootError(f"frost must be a folder with photographs, and '{folder}' has none.")
    return [to_tensor(read_image(path)).float().div_(255) for path in paths]


def crops(chances: Tensor, size: tuple[int, int], choice: tuple[Tensor, ...]) -> Tensor:
    """A crop for each row of three numbers in [0, 1): which photograph, and where."""
    result = torch.empty(len(chances), 3, *size)
    which = (chances[:, 0] * len(choice)).long()
    for number, photograph in enumerate(choice):
        chosen = (which == number).nonzero()[:, 0]
        result[chosen] = cut(photograph, chances[chosen, 1], chances[chosen, 2], size)
    return result


def cut(texture: Tensor, down: Tensor, across: Tensor, size: tuple[int, int]) -> Tensor:
    """Windows of a channels x height x width texture at positions given as numbers in [0, 1): batch x channels x size."""
    top, left = (
        (chance * (side - own + 1)).long() for chance, side, own in zip((down, across), texture.shape[1:], size, strict=True)
    )
    rows, columns = top[:, None] + torch.arange(size[0]), left[:, None] + torch.arange(size[1])
    pixels = (rows[:, :, None] * texture.shape[2] + columns[:, None]).flatten(1)
    windows: Tensor = texture.flatten(1)[:, pixels].transpose(0, 1).unflatten(2, size)
    return windows


# Snow: flakes, blurred by their fall, over a paler image.


def snow(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """keep * x + (1 - keep) * max(x, 1.5 * grey(x) + 0.5) + flakes + flakes turned by 180 degrees."""
    height, width = images.shape[2:]
    layer = draws.normal((1, height, width)).to(images).mul_(constants["std"]).add_(constants["mean"])
    layer = apply(zoom_matrix(height, constants["zoom"]), layer, zoom_matrix(width, constants["zoom"]))
    layer = to_levels(layer.masked_fill_(layer < constants["threshold"], 0)).div_(255)
    turns = draws.uniform((1,), "angle")[:, 0] - 0.5
    flakes = along(layer, -90.0, turns, constants["radius"], constants["sigma"])
    pale = torch.maximum(images, grey(images).mul(1.5).add_(0.5))
    return torch.lerp(pale, images, constants["keep"]).add_(flakes + flakes.flip((2, 3)))


# Spatter: drops of water that shine at their rims, or mud.


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
