"""Some images of a split, every class in its share, for measurements that cannot afford all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..errors import require
from ..seeds import generator
from ..types import Batch, Labels
from .dataset import Split, TensorSplit
from .streaming import StreamedSplit


@dataclass(frozen=True)
class ChosenSplit:
    """A split that can only be read from its beginning, without the images that were not chosen."""

    split: Split
    chosen: Tensor  # bool, one for each image

    def __len__(self) -> int:
        return int(self.chosen.sum())

    def batches(self, batch_size: int, **options: Any) -> Iterator[Batch]:
        start = 0
        for batch in self.split.batches(batch_size, **options):
            kept = self.chosen[start : start + len(batch.labels)].nonzero().flatten()
            start += len(batch.labels)
            if len(kept):
                where = kept.to(batch.images.device)
                yield Batch(batch.images[where], batch.labels[where], batch.indices[kept])


def indices_of(split: Split, batch_size: int) -> Tensor:
    """Each image's place in the whole data set; a stream is read for them."""
    held: Tensor | None = getattr(split, "indices", None)
    return torch.cat([batch.indices for batch in split.batches(batch_size)]) if held is None else held


def choose(split: Split, count: int | None, seed: int = 0) -> Split:
    """At most `count` images, in the split's order; all of them for None."""
    require(count is None or count >= 1, "count", "at least 1", count)
    if count is None or count >= len(split):
        return split
    if isinstance(split, TensorSplit):
        rows = stratified_places(split.labels, count, seed)
        return replace(split, images=split.images[rows], labels=split.labels[rows], indices=split.indices[rows])
    if isinstance(split, StreamedSplit):
        rows = stratified_places(split.labels, count, seed)
        return replace(split, labels=split.labels[rows], indices=split.indices[rows])
    places = torch.linspace(0, len(split) - 1, count).round().long()  # labels are not known ahead
    return ChosenSplit(split, torch.zeros(len(split), dtype=torch.bool).index_fill_(0, places, True))


def stratified_places(labels: Labels, count: int, seed: int) -> Tensor:
    """Exactly `count` places, each class as often as its share allows, in rising order.

    Images are ordered so that every prefix is stratified: the k-th of n images of a class, drawn at random, stands at
    (k + phase) / n.
    """
    draws = generator(seed, "chosen")
    order = torch.randperm(len(labels), generator=draws)
    order = order[labels[order].argsort(stable=True)]
    counts = labels.bincount()
    rank = torch.arange(len(labels)) - (counts.cumsum(0) - counts)[labels[order]]
    phase = torch.rand(len(counts), generator=draws, dtype=torch.float64)
    position = (rank + phase[labels[order]]) / counts[labels[order]]
    return order[position.argsort(stable=True)[:count]].sort().values
