"""Frost: a random crop of a frosted window, mixed with the image.

The benchmarks' five photographs are not ours to ship. `frost_texture` makes one with their statistics; `frost_photographs`
takes real ones from a folder, or from an installed `imagecorruptions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from ..data.reading import SUFFIXES, read_image, to_tensor
from ..errors import NotFound, SurefootError
from ..types import Images
from .draws import ImageDraws
from .frost_texture import crops as generated_crops
from .severities import Constants

PACKAGE = "imagecorruptions"
_FOLDER: ContextVar[Path | None] = ContextVar("frost", default=None)


def frost(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """image_weight * x + frost_weight * frost."""
    folder, size = _FOLDER.get(), (images.shape[2], images.shape[3])
    chances = draws.uniform((5,))
    if folder is None:
        windows = generated_crops(chances, size, constants["texture_scale"])
    else:
        windows = photograph_crops(chances, size, photographs(folder, constants["texture_scale"], size))
    if images.shape[1] == 1:
        windows = windows.mean(1, keepdim=True)
    return torch.add(images * constants["image_weight"], windows.to(images), alpha=constants["frost_weight"])


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


def find_photographs(source: str | Path) -> Path:
    """The folder of frost photographs that `source` means."""
    if str(source) == PACKAGE:
        spec = find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise SurefootError(f"frost must be a folder or an installed '{PACKAGE}', which is not installed.")
        return Path(spec.origin).parent / "frost"
    if not Path(source).is_dir():
        raise NotFound("folder of frost photographs", source)
    return Path(source)


@lru_cache(maxsize=8)
def photographs(folder: Path, scale: float, size: tuple[int, int]) -> tuple[Tensor, ...]:
    """The photographs shrunk by `scale` (3 x height x width, float), enlarged again where they would not hold a crop."""
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise SurefootError(f"frost must be a folder with photographs, and '{folder}' has none.")
    found = []
    for path in paths:
        photograph = to_tensor(read_image(path)).float().div_(255)
        needed = max(size[0] / photograph.shape[1], size[1] / photograph.shape[2])
        sides = [max(least, round(side * max(scale, needed))) for side, least in zip(photograph.shape[1:], size, strict=True)]
        found.append(F.interpolate(photograph[None], sides, mode="bilinear", align_corners=False)[0])
    return tuple(found)


def photograph_crops(chances: Tensor, size: tuple[int, int], found: tuple[Tensor, ...]) -> Tensor:
    """A crop for each row of chances: which photograph, and where."""
    height, width = size
    out = torch.empty(len(chances), 3, height, width)
    which = (chances[:, 0] * len(found)).long()
    for number, photograph in enumerate(found):
        chosen = (which == number).nonzero()[:, 0]
        out[chosen] = cut(photograph, chances[chosen, 1], chances[chosen, 2], size)
    return out


def cut(texture: Tensor, down: Tensor, across: Tensor, size: tuple[int, int]) -> Tensor:
    """Windows of a channels x height x width texture at places given as numbers in [0, 1): batch x channels x size."""
    top, left = (
        (chance * (side - own + 1)).long() for chance, side, own in zip((down, across), texture.shape[1:], size, strict=True)
    )
    rows, columns = top[:, None] + torch.arange(size[0]), left[:, None] + torch.arange(size[1])
    places = (rows[:, :, None] * texture.shape[2] + columns[:, None]).flatten(1)
    windows: Tensor = texture.flatten(1)[:, places].transpose(0, 1).unflatten(2, size)
    return windows
