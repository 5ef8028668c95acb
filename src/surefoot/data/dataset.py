"""A data set is four disjoint splits and what a model must know about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..errors import UnknownName, require
from ..types import Batch, Labels
from .splitting import SPLITS


@dataclass(frozen=True)
class TensorSplit:
    """A split held in memory as one uint8 tensor, batched without touching single images."""

    images: Tensor  # uint8, count x channels x height x width
    labels: Labels
    indices: Tensor  # place of each image in the whole data set

    def __len__(self) -> int:
        return len(self.labels)

    def batches(
        self,
        batch_size: int,
        *,
        shuffle: torch.Generator | None = None,
        drop_last: bool = False,
        device: torch.device | str = "cpu",
    ) -> Iterator[Batch]:
        """Batches of float pixels in [0, 1], in order, or shuffled by the generator given."""
        require(batch_size >= 1, "batch_size", "at least 1", batch_size)
        order = torch.arange(len(self)) if shuffle is None else torch.randperm(len(self), generator=shuffle)
        for chosen in order.split(batch_size):
            if drop_last and len(chosen) < batch_size:
                return
            images = self.images[chosen].to(device).float().div_(255)
            yield Batch(images, self.labels[chosen].to(device), self.indices[chosen])


@dataclass(frozen=True)
class Dataset:
    """Four splits that share no image; `source` is how to load the same data again."""

    train: TensorSplit
    calibration: TensorSplit
    validation: TensorSplit
    test: TensorSplit
    class_names: tuple[str, ...]
    source: dict[str, Any] = field(default_factory=dict)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def channels(self) -> int:
        return self.test.images.shape[1]

    @property
    def image_size(self) -> tuple[int, int]:
        height, width = self.test.images.shape[2:]
        return height, width

    def split(self, name: str) -> TensorSplit:
        """The split called `name`."""
        if name not in SPLITS:
            raise UnknownName("split", name, SPLITS)
        split: TensorSplit = getattr(self, name)
        return split
