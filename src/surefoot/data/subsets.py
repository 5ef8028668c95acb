"""Some images of a split, every class in its share, for measurements that cannot afford all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..errors import require
from ..seeds import generator
from ..types import Batch, Labels
from .dataset import Split, TensorSplit, joined, to_pixels
from .streaming import StreamedSplit, read_batches, stack

GOLDEN = (5**0.5 - 1) / 2  # multiples of it spread evenly over [0, 1), however many


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
    """Each image's index in the whole data set; a stream is read for them."""
    indices: Tensor | None = getattr(split, "indices", None)
    return torch.cat([batch.indices for batch in split.batches(batch_size)]) if indices is None else indices


def choose(split: Split, count: int | None, seed: int = 0) -> Split:
    """At most `count` images, in the split's order; all of them for None."""
    rows = chosen_rows(split, count, seed)
    return split if len(rows) == len(split) else taken(split, rows)


def chosen_rows(split: Split, count: int | None, seed: int = 0) -> Tensor:
    """Where at most `count` images stand in a split, in rising order; fewer are among more."""
    require(count is None or count >= 1, "count", "at least 1", count)
    if count is None or count >= len(split):
        return torch.arange(len(split))
    if isinstance(split, TensorSplit | StreamedSplit):
        return stratified_indices(split.labels, count, seed)
    spread = (torch.arange(len(split), dtype=torch.float64) * GOLDEN).frac()  # labels are not known ahead
    return spread.argsort(stable=True)[:count].sort().values


def taken(split: Split, rows: Tensor) -> Split:
    """Some images of a split; a stream gives them in its own order."""
    if isinstance(split, TensorSplit):
        return replace(split, images=split.images[rows], labels=split.labels[rows], indices=split.indices[rows])
    if isinstance(split, StreamedSplit):
        return replace(split, labels=split.labels[rows], indices=split.indices[rows])
    return ChosenSplit(split, torch.zeros(len(split), dtype=torch.bool).index_fill_(0, rows, True))


def chunks_of(split: Split, chunks: Sequence[Tensor], device: torch.device | str = "cpu") -> Iterator[Batch]:
    """The images at each list of rows, one after the other, read ahead where a split can.

    The rows of a stream must rise from chunk to chunk: it is read once.
    """
    if isinstance(split, TensorSplit):
        for rows in chunks:
            yield Batch(to_pixels(split.images[rows], device), split.labels[rows].to(device), split.indices[rows])
    elif isinstance(split, StreamedSplit):
        order = [split.indices[rows].tolist() for rows in chunks]
        for rows, items in zip(chunks, read_batches(split.pictures, order, split.workers), strict=True):
            yield Batch(to_pixels(stack(items), device), split.labels[rows].to(device), split.indices[rows])
    elif len(chunks):
        every = torch.cat(list(chunks))
        require(bool((every.diff() > 0).all()), "rows of a stream", "in rising order", every.tolist()[:8])
        waiting: list[Batch] = []
        sizes = iter([len(rows) for rows in chunks])
        size = next(sizes)
        for batch in taken(split, every).batches(max(len(rows) for rows in chunks), device=device):
            waiting.append(batch)
            while sum(len(each) for each in waiting) >= size:
                together = joined(waiting)
                yield together[:size]
                waiting, size = [together[size:]], next(sizes, len(every) + 1)


def stratified_indices(labels: Labels, count: int, seed: int) -> Tensor:
    """Exactly `count` indices, each class as often as its share allows, in rising order.

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
