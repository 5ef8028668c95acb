"""Stratified, disjoint, reproducible splits."""

from __future__ import annotations

import torch
from torch import Tensor

from ..seeds import generator
from ..types import Labels

SPLITS = ("train", "calibration", "validation", "test")


def stratified_split(labels: Labels, shares: dict[str, float], seed: int) -> dict[str, Tensor]:
    """Indices for each named share, every class divided in the same proportions.

    Each class is shuffled and cut at the cumulative shares; the cut of a class starts at a random phase, so that
    rounding does not favour the same split in every class.
    """
    draws = generator(seed, "split")
    order = torch.randperm(len(labels), generator=draws)
    order = order[labels[order].argsort(stable=True)]
    counts = labels.bincount()
    starts = counts.cumsum(0) - counts
    rank = torch.arange(len(labels)) - starts[labels[order]]
    phase = torch.rand(len(counts), generator=draws)
    position = (rank + phase[labels[order]]) / counts[labels[order]]
    bounds = torch.tensor(list(shares.values()), dtype=torch.float64).cumsum(0)
    bucket = torch.bucketize(position.double(), bounds[:-1], right=True)
    return {name: order[bucket == k].sort().values for k, name in enumerate(shares)}
