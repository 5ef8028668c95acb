"""One pass over the logits, the probabilities of a block in memory at a time: what `per_image` keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..errors import SurefootError, require
from ..types import Predictions
from .bins import Entries, ReliabilityBins
from .bootstrap import CHUNK, copies, empty_draws, states
from .per_image import PerImage

CELLS = 2**21  # logits held as probabilities at once
TOP = 5
UNDERFLOW = 1e-30  # below this the loss is taken from the logits


@dataclass(frozen=True)
class Summary:
    """What one look at the probabilities gives for each image."""

    highest: Tensor
    tied: Tensor  # whether two classes may share the highest
    own: Tensor  # the label's
    norms: Tensor
    entries: Entries
    totals: NDArray[Any]


def parts_of(predictions: Predictions | Iterable[Predictions]) -> Iterable[Predictions]:
    return [predictions] if isinstance(predictions, Predictions) else predictions


def blocks_of(logits: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Probabilities of some images at a time, in float32 at least; each overwrites the one before."""
    rows = max(1, CELLS // logits.shape[1])
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    buffer = torch.empty(min(rows, len(logits)), logits.shape[1], dtype=dtype)
    for start in range(0, len(logits), rows):
        block = logits[start : start + rows].detach().to("cpu", dtype)
        yield slice(start, start + len(block)), torch.softmax(block, 1, out=buffer[: len(block)])


class Subset:
    """The predictions, in batches, for images of some ids only."""

    def __init__(self, predictions: Predictions | Iterable[Predictions], ids: NDArray[Any]) -> None:
        self.predictions, self.ids = predictions, ids

    def __iter__(self) -> Iterator[Predictions]:
        for part in parts_of(self.predictions):
            assert part.indices is not None
            yield part[torch.from_numpy(np.isin(part.indices.cpu().numpy(), self.ids)).to(part.logits.device)]


def read_logits(predictions: Predictions | Iterable[Predictions], bins: int) -> PerImage:
    """Read the logits once; ids are the indices where every batch has them, or else 0, 1, ..."""
    columns: list[tuple[Tensor, ...]] = []
    entries, starts = [], []
    indices: list[Tensor | None] = []
    seen, totals, table = 0, np.zeros(0), None
    for part in parts_of(predictions):
        if len(part) == 0:
            continue
        if columns and part.num_classes != len(totals):
            raise SurefootError(f"logits must have the same classes in every batch, got {len(totals)} and {part.num_classes}.")
        labels, summary = part.labels.cpu(), summarise(part.logits, part.labels.cpu(), bins)
        columns.append((*columns_of(part.logits.detach(), summary, labels), labels))
        own = ReliabilityBins.of(columns[-1][0], columns[-1][1], bins)
        table = own if table is None else table + own
        totals = summary.totals if seen == 0 else totals + summary.totals
        entries.append(summary.entries)
        starts.append(seen)
        indices.append(part.indices)
        seen += len(part)
    require(seen > 0, "predictions", "of at least one image", 0)
    assert table is not None
    given = [part_indices.cpu() for part_indices in indices if part_indices is not None]
    ids = torch.cat(given).numpy() if len(given) == len(indices) else np.arange(seen)
    confidences, correct, losses, squares, top5, classes = (torch.cat(parts).numpy() for parts in zip(*columns, strict=True))
    joined = Entries.join(entries, starts)
    return PerImage(confidences, correct, losses, squares, top5, classes, joined, totals, table, ids)


def summarise(logits: Tensor, labels: Tensor, bins: int) -> Summary:
    """One pass, with no sort of the classes and no memory but a block's."""
    classes, dtype = logits.shape[1], torch.float64 if logits.dtype == torch.float64 else torch.float32
    highest, own, norms = torch.empty(3, len(logits), dtype=dtype)
    totals, entries, starts = torch.zeros(classes, dtype=torch.float64), [], []
    ones = torch.ones(len(logits), dtype=dtype)
    for rows, p in blocks_of(logits):
        torch.gather(p, 1, labels[rows].unsqueeze(1), out=own[rows].unsqueeze(1))
        torch.amax(p, 1, out=highest[rows])
        torch.linalg.vector_norm(p, dim=1, out=norms[rows])
        totals += ones[: len(p)] @ p
        entries.append(Entries.of(p.numpy(), bins))
        starts.append(rows.start)
    joined = Entries.join(entries, starts)
    best = joined.images[joined.probabilities == highest.numpy()[joined.images]]
    tied = torch.from_numpy(np.bincount(best, minlength=len(logits)) != 1)
    return Summary(highest, tied, own, norms, joined.binned(bins), totals.numpy())


def columns_of(logits: Tensor, summary: Summary, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Confidence, correct, loss, square and top-5."""
    own = summary.own.double()
    losses = -own.log()
    tiny = (own < UNDERFLOW).nonzero().squeeze(1)
    losses[tiny] = F.cross_entropy(logits[tiny].cpu().double(), labels[tiny], reduction="none")
    squares = summary.norms.double().square() - 2 * own + 1
    correct = summary.own == summary.highest
    doubtful = (correct & summary.tied).nonzero().squeeze(1)
    correct[doubtful] = logits[doubtful].cpu().argmax(1) == labels[doubtful]
    top5 = correct.clone()
    for rows in (~correct).nonzero().squeeze(1).split(max(1, CELLS // logits.shape[1])):
        top5[rows] = in_top(logits[rows].cpu(), labels[rows])
    return summary.highest.double(), correct, losses.clamp_min(0), squares.clamp_min(0), top5


def in_top(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether fewer than five classes come before the label: those with a higher logit, and of equals the earlier ones."""
    own, ones = logits.gather(1, labels.unsqueeze(1)), torch.ones(logits.shape[1])
    above = torch.gt(logits, own, out=torch.empty(logits.shape)) @ ones
    close = (above < TOP).nonzero().squeeze(1)
    tied = close[torch.eq(logits[close], own[close], out=torch.empty(len(close), len(ones))) @ ones > 1]
    equal = (logits[tied] == own[tied]) & (torch.arange(len(ones)) < labels[tied].unsqueeze(1))
    above[tied] += equal.float() @ ones
    return above < TOP


def weighted_totals(predictions: Predictions | Iterable[Predictions], ids: NDArray[Any], seed: int, draws: int) -> NDArray[Any]:
    """The sum of every class's probability under the copies of every draw, draws x classes: one more pass over the logits."""
    hashes = states(ids, seed)
    empty = torch.from_numpy(empty_draws(hashes, draws))
    seen, totals = 0, torch.zeros(0)
    for part in parts_of(predictions):
        totals = totals if seen else torch.zeros(draws, part.num_classes, dtype=torch.float64)
        for rows, p in blocks_of(part.logits):
            for start, some in enumerate(p.split(size := max(1, CHUNK // draws))):
                first = seen + rows.start + start * size
                weights = torch.from_numpy(copies(hashes[first : first + len(some)], 0, draws)).to(p.dtype)
                weights[:, empty] = 1
                totals += (weights.T @ some).double()
        seen += len(part)
    return totals.numpy()
