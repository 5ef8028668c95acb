"""Intervals by drawing images again, and the band that a perfectly calibrated model would show."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ..seeds import generator
from ..types import Estimate

DRAWS = 1000
CHUNK = 2**22  # draws x images held at once


def _chunks(images: int, draws: int) -> Iterator[int]:
    size = max(1, CHUNK // max(images, 1))
    for start in range(0, draws, size):
        yield min(size, draws - start)


def resampled_sums(values: Tensor, seed: int, draws: int = DRAWS) -> Tensor:
    """Column sums of `values` (images x columns) over images drawn with replacement: draws x columns."""
    count, random = len(values), generator(seed, "bootstrap")
    rows = []
    for size in _chunks(count, draws):
        picks = torch.randint(count, (size, count), generator=random)
        weights = torch.zeros(size, count, dtype=values.dtype)
        weights.scatter_add_(1, picks, torch.ones_like(weights))
        rows.append(weights @ values)
    return torch.cat(rows)


def mean_estimate(values: Tensor, seed: int, draws: int = DRAWS) -> Estimate:
    """The mean of one value per image, with its percentile interval."""
    values = values.double().view(-1, 1)
    return estimate(float(values.mean()), resampled_sums(values, seed, draws)[:, 0] / len(values))


def estimate(value: float, samples: Tensor) -> Estimate:
    """A value with the 2.5 and 97.5 percentiles of its bootstrap samples."""
    low, high = samples.quantile(torch.tensor([0.025, 0.975], dtype=samples.dtype)).tolist()
    return Estimate(value, low, high)


def calibrated_ece(confidences: Tensor, membership: Tensor, seed: int, draws: int = DRAWS) -> Tensor:
    """ECE of a perfectly calibrated model with these confidences: each answer is right with its own probability.

    `membership` is images x bins (0 or 1). ECE is above 0 even then, since it sums absolute values of noise.
    """
    random, rows = generator(seed, "calibrated"), []
    for size in _chunks(len(confidences), draws):
        right = torch.rand(size, len(confidences), generator=random, dtype=torch.float64) < confidences
        gaps = (confidences - right.double()) @ membership
        rows.append(gaps.abs().sum(1) / len(confidences))
    return torch.cat(rows)
