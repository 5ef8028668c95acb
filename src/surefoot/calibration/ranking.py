"""Scores that look at the order of the confidences: risk and coverage, spotting mistakes, bins of equal mass.

Images of equal confidence have no order among themselves: they are taken together, each with the mean of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ranking:
    """Sums over all images up to each distinct confidence, in rising order, under weights: draws x (1 + distinct).

    Weights are whole numbers, as an image is drawn or not.
    """

    weights: Array
    errors: Array
    gaps: Array  # of confidence minus right

    @property
    def aurc(self) -> Array:
        """Area under the risk-coverage curve: mean over k of the error rate of the k most confident (Geifman et al. 2019).

        Where `w` images of one confidence, with error rate `e`, come after W images with E errors, the k-th of all has
        E + e (k - W) errors up to it, and the sum of that over k is e w + (E - e W) (H(W + w) - H(W)), H harmonic numbers.
        """
        images = self.weights[:, -1:]
        above, above_errors = images - self.weights, self.errors[:, -1:] - self.errors
        count, errors = np.diff(self.weights), np.diff(self.errors)
        rate = errors / np.maximum(count, 1)
        numbers = np.arange(1, int(images.max()) + 1)
        harmonic = np.concatenate([[0.0], np.cumsum(1 / numbers)]).take(above.astype(np.int64))
        slope = above_errors[:, 1:] - rate * above[:, 1:]
        areas: Array = (self.errors[:, -1] - np.einsum("ij,ij->i", slope, np.diff(harmonic))) / images[:, 0]
        return areas

    @property
    def auroc(self) -> Array:
        """The chance that a right prediction is more confident than a mistake, ties by half; NaN without either."""
        right = self.weights - self.errors
        higher = right[:, -1:] - (right[:, 1:] + right[:, :-1]) / 2
        pairs = self.errors[:, -1] * right[:, -1]
        areas: Array = np.einsum("ij,ij->i", np.diff(self.errors), higher) / np.where(pairs > 0, pairs, np.nan)
        return areas

    def adaptive_gaps(self, bins: int) -> Array:
        """Confidence minus accuracy in bins of the same number of images, as shares of all: draws x bins.

        The sum of their absolute values is the adaptive ECE (Nixon et al. 2019). Bins are cut after k n / bins, rounded down.
        """
        images = self.weights[:, -1:]
        cuts = np.arange(bins + 1) * images // bins
        after = np.stack([np.searchsorted(row, own) for row, own in zip(self.weights, cuts, strict=True)])
        after = np.maximum(after, 1)
        low, high, low_gap, high_gap = (
            np.take_along_axis(sums, indices, 1) for sums in (self.weights, self.gaps) for indices in (after - 1, after)
        )
        share = (cuts - low) / np.maximum(high - low, 1)
        return np.diff(low_gap + share * (high_gap - low_gap)) / images


@dataclass(frozen=True)
class Order:
    """The images by rising confidence."""

    images: NDArray[np.int64]
    ends: NDArray[np.int64]  # the last image of each distinct confidence
    wrong: NDArray[np.bool_]
    gaps: Array

    @classmethod
    def of(cls, confidences: ArrayLike, correct: ArrayLike) -> Order:
        confidences, correct = np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=bool)
        order = confidences.argsort(kind="stable")
        ordered, right = confidences[order], correct[order]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        return cls(order, ends, ~right, ordered - right)

    def ranking(self, weights: Array) -> Ranking:
        """The sums under every draw's weights (draws x images)."""
        drawn = np.take(weights, self.images, axis=1)

        def up_to(values: Array) -> Array:
            out = np.zeros((len(values), len(self.ends) + 1))
            if len(self.ends) == len(self.images):
                np.cumsum(values, 1, out=out[:, 1:])
            else:
                out[:, 1:] = np.cumsum(values, 1)[:, self.ends]
            return out

        return Ranking(up_to(drawn), up_to(drawn * self.wrong), up_to(drawn * self.gaps))
