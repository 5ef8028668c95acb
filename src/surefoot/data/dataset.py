"""A data set is four disjoint splits and what a model must know about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ..errors import SurefootError, require
from ..types import Batch, Labels
from .arguments import check_split
from .augmentation import Augmentation
from .image_files import check_room


class Split(Protocol):
    """Images and labels in batches of float pixels in [0, 1], in order, or shuffled by the generator given.

    `part` takes these indices of each batch only, for one of several processes.
    """

    def __len__(self) -> int: ...

    def batches(
        self,
        batch_size: int,
        *,
        shuffle: torch.Generator | None = None,
        drop_last: bool = False,
        device: torch.device | str = "cpu",
        part: Tensor | None = None,
    ) -> Iterator[Batch]: ...


@dataclass(frozen=True, repr=False)
class TensorSplit:
    """A split held in memory as one uint8 tensor, batched without touching single images."""

    images: Tensor  # uint8, count x channels x height x width
    labels: Labels
    indices: Tensor  # index of each image in the whole data set
    files: Sequence[Path] | None = None  # of the whole data set, where it was read from files

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"TensorSplit({len(self)} images of {' x '.join(map(str, self.images.shape[1:]))} in memory)"

    def batches(
        self,
        batch_size: int,
        *,
        shuffle: torch.Generator | None = None,
        drop_last: bool = False,
        device: torch.device | str = "cpu",
        part: Tensor | None = None,
    ) -> Iterator[Batch]:
        for chosen in batch_indices(len(self), batch_size, shuffle, drop_last, part):
            yield Batch(to_pixels(self.images[chosen], device), self.labels[chosen].to(device), self.indices[chosen])


@dataclass(frozen=True)
class Dataset:
    """Four splits that share no image; `source` is how to load the same data again.

    `augmentation` is what suits these images in training; `notes` says what happened on loading (images left out, for example).
    """

    train: Split
    calibration: Split
    validation: Split
    test: Split
    class_names: tuple[str, ...]
    image_size: tuple[int, int]
    channels: int = 3
    augmentation: Augmentation = field(default_factory=Augmentation)
    source: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    def split(self, name: str) -> Split:
        """The split called `name`."""
        check_split(name)
        split: Split = getattr(self, name)
        return split


def joined(batches: Iterable[Batch]) -> Batch:
    """Batches as one."""
    parts = list(batches)
    if not parts:
        raise SurefootError("The split has no images.")
    return Batch(*(torch.cat([getattr(batch, part) for batch in parts]) for part in ("images", "labels", "indices")))


def whole(split: Split, batch_size: int, device: torch.device | str = "cpu") -> Batch:
    """All images of a split in memory, read batch by batch: for the few that must be there together."""
    batches = iter(split.batches(batch_size, device=device))
    first = list(islice(batches, 1))
    for batch in first:
        check_room(len(split), batch.images[0])
    return joined(chain(first, batches))


def batch_indices(
    count: int, batch_size: int, shuffle: torch.Generator | None, drop_last: bool, part: Tensor | None
) -> Iterator[Tensor]:
    """Places in a split, batch by batch; every kind of split draws its order here."""
    require(batch_size >= 1, "batch_size", "at least 1", batch_size)
    order = torch.arange(count) if shuffle is None else torch.randperm(count, generator=shuffle)
    for chosen in order.split(batch_size):
        if len(chosen) == batch_size or (len(chosen) and not drop_last):
            yield chosen if part is None else chosen[part]


def to_pixels(images: Tensor, device: torch.device | str) -> Tensor:
    """uint8 as floats in [0, 1], moved to the device while they are small."""
    return images.to(device).float().div_(255)
