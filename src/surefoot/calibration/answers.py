"""One pass over the logits: a few numbers for each image, from which every score follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import SurefootError, require
from ..types import Predictions
from .bins import ReliabilityBins
from .class_bins import Entries

CELLS = 2**20  # logits held as probabilities at once
TOP = 5


@dataclass(frozen=True)
class Answers:
    """What is left of predictions when their logits are gone; one number of each kind for each image."""

    confidences: Tensor
    correct: Tensor
    losses: Tensor  # -log p of the label
    squares: Tensor  # sum over classes of (p - [label])^2
    top5: Tensor
    labels: Tensor
    entries: Entries
    totals: Tensor  # the sum of every class's probability
    reliability: ReliabilityBins

    def __len__(self) -> int:
        return len(self.labels)


def batches_of(predictions: Predictions | Iterable[Predictions]) -> Iterator[Predictions]:
    """Rows that fit into memory as probabilities, in float32 at least."""
    for part in [predictions] if isinstance(predictions, Predictions) else predictions:
        rows = max(1, CELLS // part.num_classes)
        for start in range(0, len(part), rows):
            yield part[start : start + rows]


def probabilities_of(logits: Tensor) -> Tensor:
    exact = logits if logits.dtype == torch.float64 else logits.float()
    return exact.softmax(1)


def answer(predictions: Predictions | Iterable[Predictions], bins: int) -> Answers:
    """Read the logits once, holding the probabilities of a batch only."""
    columns: list[tuple[Tensor, ...]] = []
    entries: list[Entries] = []
    starts, seen, classes = [], 0, 0
    totals, table = torch.zeros(0), None
    for batch in batches_of(predictions):
        logits, labels = batch.logits.detach().cpu(), batch.labels.cpu()
        if columns and logits.shape[1] != classes:
            raise SurefootError(f"logits must have the same classes in every batch, got {classes} and {logits.shape[1]}.")
        classes = logits.shape[1]
        p = probabilities_of(logits)
        if not columns:
            totals = torch.zeros(classes, dtype=torch.float64)
        totals += (torch.ones(len(p), dtype=p.dtype) @ p).double()
        columns.append((*columns_of(logits, p, labels), labels))
        part = ReliabilityBins.of(columns[-1][0], columns[-1][1], bins)
        table = part if table is None else table + part
        entries.append(Entries.of(p, bins))
        starts.append(seen)
        seen += len(p)
    require(seen > 0, "predictions", "of at least one image", 0)
    assert table is not None
    confidences, correct, losses, squares, top5, labels = (torch.cat(parts) for parts in zip(*columns, strict=True))
    return Answers(confidences, correct, losses, squares, top5, labels, Entries.join(entries, starts), totals, table)


def columns_of(logits: Tensor, p: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Confidence, correct, loss, square and top-5 of a batch, with no sort of the classes."""
    own, label_p = (scores.gather(1, labels.unsqueeze(1)) for scores in (logits, p))
    highest, confidences = logits.amax(1), p.amax(1).double()
    # lse = highest - log(confidence), since the highest logit has the confidence for its probability
    losses = highest.double() - confidences.log() - own.squeeze(1).double()
    squares = torch.linalg.vector_norm(p, dim=1).double().square() - 2 * label_p.squeeze(1).double() + 1
    correct = own.squeeze(1) == highest
    doubtful = (correct & (confidences < 0.51)).nonzero().squeeze(1)  # only there may another class have the same logit
    correct[doubtful] = logits[doubtful].argmax(1) == labels[doubtful]
    top5 = correct.clone()
    wrong = (~correct).nonzero().squeeze(1)
    top5[wrong] = rank_of(logits[wrong], own[wrong], labels[wrong]) < TOP
    return confidences, correct, losses.clamp_min(0), squares.clamp_min(0), top5


def rank_of(logits: Tensor, own: Tensor, labels: Tensor) -> Tensor:
    """How many classes come before the label: those with a higher logit, and of equals the earlier ones."""
    above = torch.count_nonzero(logits > own, dim=1)
    close = (above < TOP).nonzero().squeeze(1)
    earlier = torch.arange(logits.shape[1]) < labels[close].unsqueeze(1)
    above[close] += torch.count_nonzero((logits[close] == own[close]) & earlier, dim=1)
    return above


def weighted_totals(predictions: Predictions | Iterable[Predictions], weights: Tensor) -> Tensor:
    """The sum of every class's probability under weights (draws x images): one more pass over the logits."""
    seen, found = 0, torch.zeros(0)
    for batch in batches_of(predictions):
        p = probabilities_of(batch.logits.detach().cpu())
        part = (weights[:, seen : seen + len(p)].to(p.dtype) @ p).double()
        found = part if seen == 0 else found + part
        seen += len(p)
    return found
