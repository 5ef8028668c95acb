"""Images with labels before they are split: files, arrays, or somebody's reader, all behind one face."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from ..errors import SurefootError
from ..types import Labels
from .augmentation import Augmentation
from .reading import BadImage, read_image
from .splitting import SPLITS, stratified_split

if TYPE_CHECKING:
    from PIL.Image import Image

WHOLE = {"train": 0.5, "calibration": 0.1, "validation": 0.1, "test": 0.3}
CARVED = {"calibration": 0.1, "validation": 0.1}  # shares of the training images, where these splits are not given


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


def places(counts: dict[str, int]) -> dict[str, Tensor]:
    """Where each split lies when the splits stand one after the other."""
    ends = torch.tensor([0, *counts.values()]).cumsum(0).tolist()
    return {name: torch.arange(start, end) for name, start, end in zip(counts, ends, ends[1:], strict=False)}


def assign_splits(labels: Labels, given: dict[str, Tensor], seed: int) -> dict[str, Tensor]:
    """Indices of train, calibration, validation and test, disjoint whatever the publisher gave.

    Nothing given: 50, 10, 10 and 30 % of each class. Train and validation only: validation is the test split, as in ImageNet.
    Calibration and validation that are not given are each a tenth of the training images. Test only: the rest is empty.
    """
    if not given:
        return stratified_split(labels, WHOLE, seed)
    parts = {name: indices for name, indices in given.items() if len(indices)}
    if "test" not in parts and "validation" in parts:
        parts["test"] = parts.pop("validation")
    if "train" in parts:
        carved = {name: share for name, share in CARVED.items() if name not in parts}
        pool = parts["train"]
        places = stratified_split(labels[pool], {"train": 1 - sum(carved.values()), **carved}, seed)
        parts |= {name: pool[chosen] for name, chosen in places.items()}
    if "test" not in parts and "train" in parts:
        raise SurefootError("The data have no test split: add a 'test' or 'val' folder, or leave out the division.")
    return {name: parts.get(name, torch.empty(0, dtype=torch.long)) for name in SPLITS}
