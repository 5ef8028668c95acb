"""Reliability bins on a fine grid of temperatures and feature scales, so that a page can slide without the logits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..calibration.bins import ReliabilityBins
from ..types import Predictions

BINS = 15
STEPS = 60  # on each side of 1
SPAN = 8.0  # from 1 / SPAN to SPAN
CELLS = 2**21  # logits held at once


def grid() -> list[float]:
    """Values in equal ratios around 1, which is one of them."""
    return [SPAN ** (k / STEPS) for k in range(-STEPS, STEPS + 1)]


def temperature_grid(predictions: Predictions, extra: Sequence[float] = ()) -> dict[str, Any]:
    """The bins at every temperature of the grid, and at those in `extra`, such as the fitted one."""
    values = sorted({*grid(), *extra})
    return slide(predictions, values, [1 / value for value in values], None)


def feature_scale_grid(predictions: Predictions, bias: Tensor | None) -> dict[str, Any] | None:
    """The bins at every scale of the features; None without a bias in the head, where it is a temperature again."""
    if bias is None or not bool(bias.any()):
        return None
    return slide(predictions, grid(), grid(), bias.detach().cpu())


def slide(predictions: Predictions, values: list[float], scales: list[float], offset: Tensor | None) -> dict[str, Any]:
    """Logits s (z - b) + b for every scale s, in one pass over the logits."""
    rows = max(1, CELLS // predictions.num_classes)
    bins: list[ReliabilityBins | None] = [None] * len(scales)
    losses = [0.0] * len(scales)
    for start in range(0, len(predictions), rows):
        logits, labels = predictions.logits[start : start + rows].float(), predictions.labels[start : start + rows]
        fixed = torch.zeros(1) if offset is None else offset.float()
        lines = logits - fixed
        for place, scale in enumerate(scales):
            scaled = torch.add(fixed, lines, alpha=scale)
            top, answer = scaled.max(1)
            total = scaled.sub_(top.unsqueeze(1)).exp_().sum(1).double()
            found = ReliabilityBins.of(1 / total, answer == labels, BINS)
            held = bins[place]
            bins[place] = found if held is None else held + found
            own = (
                lines.gather(1, labels[:, None]).squeeze(1) * scale + fixed.expand(predictions.num_classes)[labels] - top
            ).double()
            losses[place] += float((total.log() - own).sum())
    whole = [each for each in bins if each is not None]
    return {
        "values": [round(value, 6) for value in values],
        "counts": [each.counts.tolist() for each in whole],
        "confidences": [[round(value, 4) for value in each.confidences.tolist()] for each in whole],
        "correct": [each.correct.tolist() for each in whole],
        "ece": [round(each.ece, 6) for each in whole],
        "nll": [round(loss / len(predictions), 6) if math.isfinite(loss) else None for loss in losses],
    }
