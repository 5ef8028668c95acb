"""Scores that look at the order of the confidences: risk and coverage, spotting mistakes, bins of equal mass.

Images of equal confidence have no order among themselves: they are taken together, each with the mean of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Ranking:
    """Sums over all images up to each distinct confidence, in rising order, under weights: draws x (1 + distinct)."""

    weights: Tensor
    errors: Tensor
    gaps: Tensor  # of confidence minus right

    @property
    def aurc(self) -> Tensor:
        """Area under the risk-coverage curve: mean over k of the error rate of the k most confident (Geifman et al. 2019).

        Where `w` images of one confidence, with error rate `e`, come after W images with E errors, the k-th of all has
        E + e (k - W) errors up to it, and the sum of that over k is e w + (E - e W) (H(W + w) - H(W)), H harmonic numbers.
        """
        images = self.weights[:, -1:]
        above, above_errors = images - self.weights, self.errors[:, -1:] - self.errors
        count, errors = self.weights.diff(dim=1), self.errors.diff(dim=1)
        rate = errors / count.clamp_min(1)
        numbers = torch.arange(1, int(images.max()) + 1, dtype=torch.float64)
        harmonic = F.pad((1 / numbers).cumsum(0), (1, 0))[above.long()]
        slope = above_errors[:, 1:] - rate * above[:, 1:]
        return (errors + slope * -harmonic.diff(dim=1)).sum(1) / images.squeeze(1)

    @property
    def auroc(self) -> Tensor:
        """The chance that a right answer is more confident than a mistake, ties by half; NaN without either."""
        right = self.weights - self.errors
        higher = right[:, -1:] - right[:, 1:] + right.diff(dim=1) / 2
        return (self.errors.diff(dim=1) * higher).sum(1) / (self.errors[:, -1] * right[:, -1])

    def adaptive_gaps(self, bins: int) -> Tensor:
        """Confidence minus accuracy in bins of the same number of images, as shares of all: draws x bins.

        The sum of their absolute values is the adaptive ECE (Nixon et al. 2019). Bins are cut after k n / bins, rounded down.
        """
        images = int(self.weights[0, -1])
        cuts = torch.tensor([k * images // bins for k in range(bins + 1)], dtype=torch.float64)
        cuts = cuts.expand(len(self.weights), -1).contiguous()
        after = torch.searchsorted(self.weights, cuts).clamp_min(1)
        low, high, low_gap, high_gap = (
            sums.gather(1, places) for sums in (self.weights, self.gaps) for places in (after - 1, after)
        )
        share = (cuts - low) / (high - low).clamp_min(1)
        return (low_gap + share * (high_gap - low_gap)).diff(dim=1) / images


def rank(confidences: Tensor, correct: Tensor, weights: Tensor) -> Ranking:
    """Sort once and sum under every draw's weights (draws x images)."""
    ordered, order = confidences.sort()
    ends = F.pad(ordered[1:] != ordered[:-1], (0, 1), value=True).nonzero().squeeze(1)
    wrong, gaps = (~correct[order]).double(), ordered - correct[order].double()
    drawn = weights[:, order]

    def up_to(values: Tensor) -> Tensor:
        return F.pad(values.cumsum(1)[:, ends], (1, 0))

    return Ranking(up_to(drawn), up_to(drawn * wrong), up_to(drawn * gaps))
