"""Bins of equal width over the confidence: what the reliability diagram draws and ECE sums."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import require
from ..types import Predictions


@dataclass(frozen=True)
class ReliabilityBins:
    """For each bin the number of images, the sum of their confidences, and how many were right."""

    counts: Tensor  # int64
    confidences: Tensor  # float64 sums
    correct: Tensor  # int64

    @property
    def gaps(self) -> Tensor:
        """Confidence minus accuracy, summed over the images of each bin, as a share of all images."""
        return (self.confidences - self.correct) / self.counts.sum()

    @property
    def ece(self) -> float:
        """Expected calibration error: sum over bins of |accuracy - confidence| times the bin's share (Guo et al. 2017)."""
        return float(self.gaps.abs().sum())

    @property
    def signed_error(self) -> float:
        """Mean confidence minus accuracy: positive is overconfident."""
        return float(self.gaps.sum())


def bin_of(confidences: Tensor, bins: int) -> Tensor:
    """The bin of each confidence: ((k - 1) / bins, k / bins], with 0 in the first and 1 in the last."""
    require(bins >= 1, "bins", "at least 1", bins)
    return (confidences.double() * bins).ceil().long().sub_(1).clamp_(0, bins - 1)


def reliability(predictions: Predictions, bins: int = 15) -> ReliabilityBins:
    """The reliability diagram's data."""
    require(len(predictions) > 0, "predictions", "of at least one image", 0)
    confidences = predictions.confidences.double()
    place = bin_of(confidences, bins)
    return ReliabilityBins(
        place.bincount(minlength=bins),
        torch.zeros(bins, dtype=torch.float64).index_add_(0, place, confidences),
        place[predictions.correct].bincount(minlength=bins),
    )
