"""Images with labels before they are split: files, arrays, or somebody's reader, all behind one face."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from ..errors import SurefootError, UnknownName, require
from ..files import read_json, read_text
from ..seeds import generator
from ..types import Labels
from .arguments import SPLITS
from .augmentation import Augmentation
from .image_files import BadImage, read_image

if TYPE_CHECKING:
    from PIL.Image import Image

# Stratified, disjoint, reproducible splits.


def stratified_split(labels: Labels, shares: dict[str, float], seed: int) -> dict[str, Tensor]:
    """Indices for each named share, every class divided in the same proportions.

    Each class is shuffled and cut at the cumulative shares; the cut of a class starts at a random phase, so that
    rounding does not favour the same split in every class.
    """
    draws = generator(seed, "split")
    order = torch.randperm(len(labels), generator=draws)
    order = order[labels[order].argsort(stable=True)]
    counts = labels.bincount()
    starts = counts.cumsum(0) - counts
    rank = torch.arange(len(labels)) - starts[labels[order]]
    phase = torch.rand(len(counts), generator=draws)
    position = (rank + phase[labels[order]]) / counts[labels[order]]
    bounds = torch.tensor(list(shares.values()), dtype=torch.float64).cumsum(0)
    bucket = torch.bucketize(position.double(), bounds[:-1], right=True)
    return {name: order[bucket == k].sort().values for k, name in enumerate(shares)}


# Another order of the classes: a file that says which name has which number.


def read_class_map(path: str | Path) -> tuple[str, ...]:
    """Class names in order: one a line, `name,number` lines, or JSON (a list, or names to numbers)."""
    path = Path(path)
    if path.suffix == ".json":
        pairs = pairs_in(read_json("class map", path), path)
    else:
        lines = [line.strip() for line in read_text("class map", path).splitlines() if line.strip()]
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
        if len(rows) != len(lines):
            raise SurefootError(f"Class map '{path}' has a quotation mark that is not closed.")
        numbered = bool(rows) and all(len(row) == 2 and row[1].isdigit() for row in rows)
        names = [row[0] if len(row) == 1 else line for row, line in zip(rows, lines, strict=True)]  # with its commas
        pairs = [(row[0], int(row[1])) for row in rows] if numbered else [(name, number) for number, name in enumerate(names)]
    order = dict(sorted(((number, name) for name, number in pairs), key=lambda pair: pair[0]))
    if len(order) != len(pairs) or len({name for name, _ in pairs}) != len(pairs) or list(order) != list(range(len(order))):
        raise SurefootError(f"Class map '{path}' must give each class its own number from 0 to {len(pairs) - 1}.")
    return tuple(order.values())


def pairs_in(content: Any, path: Path) -> list[tuple[str, int]]:
    """Names and numbers from JSON."""
    if isinstance(content, list) and all(type(name) in (str, int) for name in content):
        return [(str(name), number) for number, name in enumerate(content)]
    if isinstance(content, dict) and all(type(number) is int for number in content.values()):
        return list(content.items())
    raise SurefootError(f"Class map '{path}' must be a list of names, or give each name its number.")


def number_classes(given: Sequence[str], class_map: str | Path | None) -> dict[str, int]:
    """The number of each class name: sorted names, or the order of the class map, which must hold them all."""
    if class_map is None:
        return {name: number for number, name in enumerate(sorted(given))}
    names = read_class_map(class_map)
    for name in given:
        if name not in names:
            raise UnknownName("class (it is not in the class map)", name, names)
    return {name: number for number, name in enumerate(names)}


def renumber_classes(own: Sequence[str], class_map: str | Path | None) -> tuple[tuple[str, ...], list[int]]:
    """For data that number their classes: the names in the order of the class map, and the new number of each old one."""
    if class_map is None:
        return tuple(own), list(range(len(own)))
    numbers = number_classes(own, class_map)
    return tuple(numbers), [numbers[name] for name in own]


TEST_SHARE = 0.3  # of all images, where there is no division
HELD_OUT = {"calibration": 0.1, "validation": 0.1}  # shares of the training images, where these splits are not given
Shares = Mapping[str, float | None]  # for each name of HELD_OUT; None is the share there


class Source(Protocol):
    """Pictures by number."""

    def read(self, index: int) -> Image: ...

    def common_size(self) -> tuple[int, int] | None:
        """Height and width if all images share them (judged by a sample where there are many), else None."""
        ...


@dataclass(frozen=True)
class Files:
    """Image files."""

    paths: Sequence[Path]

    def read(self, index: int) -> Image:
        return read_image(self.paths[index])

    def common_size(self) -> tuple[int, int] | None:
        step = max(1, len(self.paths) // 64)
        return common_size(self, range(0, len(self.paths), step))


@dataclass(frozen=True)
class Arrays:
    """Images that are in memory already, uint8, count x channels x height x width."""

    images: Tensor

    def read(self, index: int) -> Image:
        from PIL import Image

        pixels = self.images[index].permute(1, 2, 0).numpy()
        return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)

    def common_size(self) -> tuple[int, int]:
        height, width = self.images.shape[2:]
        return height, width


def files_of(source: Source) -> Sequence[Path] | None:
    """The file of each picture, where there are files."""
    return source.paths if isinstance(source, Files) else None


def common_size(source: Source, sample: Iterable[int]) -> tuple[int, int] | None:
    """The size that all images of a sample share; those that cannot be read are met again when all are read."""
    sizes = set()
    for index in sample:
        try:
            image = source.read(index)
        except BadImage:
            continue
        sizes.add((image.height, image.width))
    return sizes.pop() if len(sizes) == 1 else None


@dataclass(frozen=True)
class Collection:
    """All images of a data set, which of them the publisher put into which split, and what is known about them."""

    source: Source
    labels: Labels
    class_names: tuple[str, ...]
    given: dict[str, Tensor] = field(default_factory=dict)  # split to indices; empty if there is no division
    channels: int = 3
    augmentation: Augmentation = field(default_factory=Augmentation)
    notes: tuple[str, ...] = ()  # what was left out on the way


def consecutive_indices(counts: dict[str, int]) -> dict[str, Tensor]:
    """Where each split lies when the splits stand one after the other."""
    ends = torch.tensor([0, *counts.values()]).cumsum(0).tolist()
    return {name: torch.arange(start, end) for name, start, end in zip(counts, ends, ends[1:], strict=False)}


def held_out_shares(given: Mapping[str, Any], wanted: Shares) -> dict[str, float]:
    """What to take from the training images for each split that is not given.

    A share for a split that the publisher gave is refused, and so is one where there are no training images to take it from.
    """
    for name, share in wanted.items():
        require(share is None or 0 <= share < 1, name, "at least 0 and below 1", share)
        if share and name in given:
            raise SurefootError(f"{name} must be 0 or left out, since the data have their own {name} split, got {share:g}.")
        if share and given and "train" not in given:
            raise SurefootError(f"{name} must be 0 or left out, since the data have no training images, got {share:g}.")
    shares = {}
    for name, usual in HELD_OUT.items():
        share = wanted.get(name)
        if name not in given:
            shares[name] = usual if share is None else share
    most = 1 if given else 1 - TEST_SHARE
    require(sum(shares.values()) < most, " + ".join(shares), f"below {most:g}", sum(shares.values()))
    return shares


def assign_splits(labels: Labels, given: Mapping[str, Tensor], seed: int, wanted: Shares) -> dict[str, Tensor]:
    """Indices of train, calibration, validation and test, disjoint whatever the publisher gave.

    `given` is what `publisher_splits` made of it. Nothing given: 30 % of each class are test. Calibration and validation that
    are not given are shares of the training images (of all images, where there is no division), a tenth each unless `wanted`
    says otherwise. Test only: the rest is empty.
    """
    shares = held_out_shares(given, wanted)
    parts = dict(given)
    if not given or "train" in given:
        pool = given.get("train", torch.arange(len(labels)))
        rest = {} if given else {"test": TEST_SHARE}
        train = round(1 - sum(rest.values()) - sum(shares.values()), 12)
        positive = {name: share for name, share in {"train": train, **shares, **rest}.items() if share}
        chosen = stratified_split(labels[pool], positive, seed)
        parts |= {name: pool[indices] for name, indices in chosen.items()}
    if "test" not in parts and "train" in parts:
        raise SurefootError("The data have no test split: add a 'test' or 'val' folder, or leave out the division.")
    return {name: parts.get(name, torch.empty(0, dtype=torch.long)) for name in SPLITS}


def publisher_splits(given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The splits that have images; with train and validation only, validation is the test split, as in ImageNet."""
    parts = {name: indices for name, indices in given.items() if len(indices)}
    if "test" not in parts and "validation" in parts:
        parts["test"] = parts.pop("validation")
    return parts
