"""Isotonic regression of each class against the rest (Zadrozny and Elkan 2002)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ..types import Logits, Predictions
from .calibrators import Calibrator, FittedOn
from .class_scaling import check_classes

FLOOR = 1e-6  # a probability that the fit puts at 0 becomes this, so that one surprise does not cost an infinite NLL


@dataclass(frozen=True, kw_only=True)
class Isotonic(Calibrator):
    """Each class's probability by a rising line through knots (classes x knots, the last repeated), then divided by their sum.

    Between knots the line is straight, outside it is level, and where it is level classes may come to be equal.
    """

    knots: Tensor
    values: Tensor

    def apply(self, logits: Logits) -> Logits:
        p = logits.double().softmax(1).T.contiguous()
        knots, values = self.knots.to(p), self.values.to(p)
        right = torch.searchsorted(knots, p).clamp(1, knots.shape[1] - 1)
        x0, x1, y0, y1 = (table.gather(1, places) for table in (knots, values) for places in (right - 1, right))
        share = ((p - x0) / (x1 - x0)).nan_to_num(1.0, 1.0, 0.0).clamp(0, 1)
        fitted = (y0 + share * (y1 - y0)).clamp_min(FLOOR)
        return (fitted / fitted.sum(0)).log().T.to(logits.dtype)


def fit_isotonic(predictions: Predictions) -> Isotonic:
    """The rising function of each class's probability with the least squared error to "is it this class"."""
    check_classes("isotonic", predictions)
    p = predictions.logits.detach().cpu().double().softmax(1)
    found = [rising_fit(p[:, c], (predictions.labels.cpu() == c).double()) for c in range(p.shape[1])]
    longest = max(2, *(len(knots) for knots, _ in found))

    def padded(values: Tensor) -> Tensor:
        return F.pad(values, (0, longest - len(values)), value=float(values[-1]))

    knots, values = (torch.stack([padded(pair[side]) for pair in found]) for side in (0, 1))
    return Isotonic(knots=knots, values=values, fitted_on=FittedOn.of(predictions))


def rising_fit(places: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Knots and values of the isotonic least-squares fit: the slopes of the greatest convex minorant of the summed targets.

    The minorant can bend only where the targets change, so runs of equal targets are taken as one: their ends suffice.
    """
    x, inverse, counts = places.unique(return_inverse=True, return_counts=True)
    means = torch.zeros_like(x).index_add_(0, inverse, targets) / counts
    starts = F.pad(means[1:] != means[:-1], (1, 0), value=True).nonzero().squeeze(1)
    ends = F.pad(starts[1:] - 1, (0, 1), value=len(x) - 1)
    weights = F.pad(counts.double().cumsum(0), (1, 0))
    blocks: list[list[float]] = []  # weight, sum, first and last place of the pool of adjacent violators
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        weight = float(weights[end + 1] - weights[start])
        block = [weight, weight * float(means[start]), start, end]
        while blocks and blocks[-1][1] * block[0] >= block[1] * blocks[-1][0]:
            last = blocks.pop()
            block = [last[0] + block[0], last[1] + block[1], last[2], block[3]]
        blocks.append(block)
    table = torch.tensor(blocks, dtype=torch.float64)
    edges = table[:, 2:].long().view(-1)
    return x[edges], (table[:, 1] / table[:, 0]).repeat_interleave(2)
