"""Splits that do not fit into memory: images are read by workers while the model computes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..types import Batch, Labels
from .collection import Source, files_of
from .dataset import batch_indices, to_pixels
from .preprocessing import Preprocessing
from .reading import BadImage, to_tensor

logger = logging.getLogger("surefoot")
Item = tuple[int, Tensor | BadImage]


@dataclass(frozen=True)
class Pictures(Dataset[Item]):
    """What a worker runs: one image, or the reason why there is none."""

    source: Source
    preprocessing: Preprocessing | None
    size: tuple[int, int]

    def __getitem__(self, index: int) -> Item:
        try:
            image = self.source.read(index)
            pixels = self.preprocessing(image) if self.preprocessing else to_tensor(image)
        except BadImage as error:
            return index, error
        if pixels.shape[1:] != self.size:
            height, width = pixels.shape[1:]
            reason = f"it is {height} x {width}, and the others are {self.size[0]} x {self.size[1]}"
            files = files_of(self.source)
            return index, BadImage(files[index] if files else f"number {index}", reason)
        return index, pixels


@dataclass(frozen=True, repr=False)
class StreamedSplit:
    """A split whose images are read when they are needed; the same batches as from memory, in the same order."""

    pictures: Pictures
    labels: Labels
    indices: Tensor
    workers: int

    @property
    def files(self) -> Sequence[Path] | None:
        """Of the whole data set, where it is read from files."""
        return files_of(self.pictures.source)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"StreamedSplit({len(self)} images, {self.workers} workers)"

    def batches(
        self,
        batch_size: int,
        *,
        shuffle: torch.Generator | None = None,
        drop_last: bool = False,
        device: torch.device | str = "cpu",
        part: Tensor | None = None,
    ) -> Iterator[Batch]:
        places = list(batch_indices(len(self), batch_size, shuffle, drop_last, part))
        order = [self.indices[chosen].tolist() for chosen in places]
        for chosen, items in zip(places, read_batches(self.pictures, order, self.workers), strict=True):
            yield Batch(to_pixels(stack(items), device), self.labels[chosen].to(device), self.indices[chosen])


def read_batches(pictures: Pictures, order: list[list[int]], workers: int) -> Iterator[list[Item]]:
    """Lists of images in the order given, read by `workers` processes (0: by this one)."""
    options: dict[str, Any] = {"batch_sampler": order, "num_workers": workers, "collate_fn": list}
    loader: DataLoader[Item] = DataLoader(pictures, **options)
    yield from loader


def stack(items: list[Item]) -> Tensor:
    """The images of a batch; one that cannot be read is an error."""
    for _, found in items:
        if isinstance(found, BadImage):
            raise found
    return torch.stack([found for _, found in items if isinstance(found, Tensor)])


def readable(pictures: Pictures, indices: Tensor, workers: int) -> Tensor:
    """Which of the images can be read, found by reading them all once."""
    good = [
        isinstance(found, Tensor)
        for items in read_batches(pictures, [part.tolist() for part in indices.split(256)], workers)
        for _, found in items
    ]
    if good.count(False):
        logger.warning("%d images cannot be read and are left out", good.count(False))
    return torch.tensor(good, dtype=torch.bool)
