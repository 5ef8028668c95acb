"""Frost: a random crop of a frosted window, mixed with the image.

The benchmarks' five photographs are not ours to ship. `frost_texture` draws windows with their statistics and their harm;
`frost_photographs` takes real ones from a folder, or from an installed `imagecorruptions`.
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
from ..imageops.colour import grey
from ..seeds import ImageDraws
from ..types import Images
from .frost_texture import windows
from .severities import Constants

PACKAGE = "imagecorruptions"
CHOICE = 5
_FOLDER: ContextVar[Path | None] = ContextVar("frost", default=None)


def frost(images: Images, constants: Constants, draws: ImageDraws) -> Images:
    """image_weight * x + frost_weight * frost."""
    size = (images.shape[2], images.shape[3])
    found = photographs(_FOLDER.get(), constants["texture_scale"], size)
    pieces = crops(draws.uniform((3,)), size, found)
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
    """Windows of a channels x height x width texture at places given as numbers in [0, 1): batch x channels x size."""
    top, left = (
        (chance * (side - own + 1)).long() for chance, side, own in zip((down, across), texture.shape[1:], size, strict=True)
    )
    rows, columns = top[:, None] + torch.arange(size[0]), left[:, None] + torch.arange(size[1])
    places = (rows[:, :, None] * texture.shape[2] + columns[:, None]).flatten(1)
    windows: Tensor = texture.flatten(1)[:, places].transpose(0, 1).unflatten(2, size)
    return windows
