"""Scores of a set of predictions, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass

from torch.nn import functional as F

from ..types import Estimate, Predictions
from .bins import bin_of, reliability
from .bootstrap import DRAWS, calibrated_ece, estimate, mean_estimate, resampled_sums


@dataclass(frozen=True)
class Scores:
    """How right a model is and how well it knows it.

    `ece_if_calibrated` is the range that ECE would have, in 95 % of cases, if the model were perfectly calibrated.
    """

    accuracy: Estimate
    nll: Estimate
    ece: Estimate
    signed_error: Estimate
    ece_if_calibrated: tuple[float, float]


def scores(predictions: Predictions, bins: int = 15, *, intervals: int = DRAWS, seed: int = 0) -> Scores:
    """Accuracy, NLL and calibration error, with bootstrap intervals from `intervals` draws."""
    table = reliability(predictions, bins)
    confidences = predictions.confidences.double()
    correct = predictions.correct.double()
    membership = F.one_hot(bin_of(confidences, bins), bins).double()
    gaps = resampled_sums(membership * (confidences - correct).unsqueeze(1), seed, intervals) / len(predictions)
    band = estimate(0.0, calibrated_ece(confidences, membership, seed, intervals))
    losses = F.cross_entropy(predictions.logits.double(), predictions.labels, reduction="none")
    return Scores(
        accuracy=mean_estimate(correct, seed, intervals),
        nll=mean_estimate(losses, seed, intervals),
        ece=estimate(table.ece, gaps.abs().sum(1)),
        signed_error=estimate(table.signed_error, gaps.sum(1)),
        ece_if_calibrated=(band.low, band.high),
    )
