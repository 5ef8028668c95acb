"""Scores of the rows under a condition, with their bootstrap draws, so that means over conditions have intervals too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..calibration.bins import ReliabilityBins
from ..calibration.bootstrap import calibrated_ece, estimate, norm_estimate, resampled_sums
from ..calibration.per_image import PerImage
from ..calibration.scoring import NORMS, interval_of, samples_of_many
from ..intervals import Estimate
from .base import Rows

BINS = 15
SCORES = ("accuracy", "ece", "nll", "rms")
BIASED = ("ece", "rms")  # which noise makes larger
BAND = 200  # draws for the range of a calibrated model
SCALED = "scaled_ece"  # ECE after temperature scaling


class Drawing(Protocol):
    """How intervals are drawn: an audit's context says it, and a comparison."""

    @property
    def seed(self) -> int: ...

    @property
    def intervals(self) -> int: ...


@dataclass(frozen=True)
class Scored:
    """Scores under one condition: their values, those of every draw of images, and the rows that they are of."""

    values: dict[str, float]
    draws: dict[str, np.ndarray]
    per_image: PerImage

    def estimate(self, name: str) -> Estimate:
        return interval_of(name, self.values[name], self.draws, self.per_image)


def per_image_of(rows: Rows, bins: int = BINS, *, scaled: bool = False) -> PerImage:
    """The rows as scores take them, before or after temperature scaling, which changes no prediction."""
    confidence = rows["scaled_confidence"] if scaled else rows["confidence"]
    known = (rows["correct"], rows["nll"], rows["brier"], rows["label"])
    return PerImage.from_columns(confidence, *known, ids=rows["index"], bins=bins)


def score(
    conditions: Sequence[Rows], names: Sequence[str], drawing: Drawing, bins: int = BINS, *, scaled: bool = False
) -> list[Scored]:
    """The scores of the same images under several conditions: the weights of the draws are made once for all."""
    items = [per_image_of(rows, bins, scaled=scaled) for rows in conditions]
    samples = samples_of_many(items, names, bins, drawing.intervals, drawing.seed)
    return [Scored(values, draws, item) for (values, draws), item in zip(samples, items, strict=True)]


def broken(clean: Rows, attacked: Rows) -> np.ndarray:
    """Which images were right before and are wrong now; the rows are of the same images."""
    changed: np.ndarray = clean["correct"].astype(bool) & ~attacked["correct"].astype(bool)
    return changed


def attack_draws(clean: Rows, attacked: Rows, seed: int, draws: int) -> dict[str, np.ndarray]:
    """The rates in every bootstrap draw; NaN where a draw has no right prediction to break."""
    both = np.stack([broken(clean, attacked), clean["correct"]], 1).astype(float)
    sums = resampled_sums(both, seed, draws, ids=clean["index"])
    lost, right = sums[:, 0], sums[:, 1]
    return {
        "success_rate": np.divide(lost, right, out=np.full_like(lost, np.nan), where=right > 0),
        "robust_accuracy": (right - lost) / len(both),
    }


def mean_over(scored: Sequence[Scored], name: str) -> Estimate:
    """The mean of a score over conditions that saw the same draws of images, with its interval."""
    value = sum(each.values[name] for each in scored) / len(scored)
    draws = np.mean([each.draws[name] for each in scored], axis=0)
    if name not in BIASED or not len(draws):
        return estimate(value, draws)
    reliability = [each.per_image.reliability for each in scored]
    gaps, shares = np.stack([each.gaps for each in reliability]), np.stack([each.shares for each in reliability])
    drawn = np.concatenate([each.draws["gaps"] for each in scored], axis=1)

    def norm(flat: np.ndarray) -> np.ndarray:
        """The mean over conditions of the score that their gaps have."""
        return np.asarray(NORMS[name](flat.reshape(*flat.shape[:-1], *gaps.shape), shares).mean(-1))

    ends = norm_estimate(gaps.ravel(), drawn, norm)
    return Estimate(value, min(ends.low, value), max(min(ends.high, 1.0), value))


def mean_if_calibrated(scored: Sequence[Scored], drawing: Drawing) -> tuple[float, float] | None:
    """Between which ends the mean ECE over conditions would lie in 95 % of cases if the model were perfectly calibrated.

    An image has the same draw under every condition, which makes the range as wide as it can be.
    """
    if not drawing.intervals:
        return None
    count = min(drawing.intervals, BAND)
    rows = [calibrated_ece(each.per_image.confidences, each.per_image.membership, drawing.seed, count) for each in scored]
    band = estimate(float(np.mean(rows)), np.mean(rows, axis=0))
    return band.low, band.high


def pooled_bins(scored: Sequence[Scored]) -> ReliabilityBins:
    """The bins of all conditions together."""
    whole = scored[0].per_image.reliability
    for each in scored[1:]:
        whole = whole + each.per_image.reliability
    return whole
