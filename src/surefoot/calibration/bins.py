"""Bins of equal width: over the confidence, for the reliability diagram and ECE, and over each class's probability."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import erf

from ..errors import require
from ..intervals import wilson

if TYPE_CHECKING:
    from ..types import Predictions


Array = NDArray[np.float64]
Whole = NDArray[np.int64]
UNIT = 2.0**-40  # sums are whole multiples of this, so that they do not depend on the order or on who adds them


@dataclass(frozen=True)
class ReliabilityBins:
    """For each bin the number of images, the sum of their confidences, how many were right, and the sum of c (1 - c).

    All are whole numbers (sums count units of 2^-40), so bins of batches or processes add up (`+`) to the very same bins in any
    order. The sum of c (1 - c) is the variance of the number of right predictions of a perfectly calibrated model.
    """

    counts: Whole
    confidence_units: Whole
    correct: Whole
    variance_units: Whole

    @classmethod
    def of(cls, confidences: ArrayLike, correct: ArrayLike, bins: int) -> ReliabilityBins:
        """The bins of some predictions."""
        confidences = np.asarray(confidences, dtype=np.float64)
        indices = bin_of(confidences, bins)

        def summed(values: Whole) -> Whole:
            out = np.zeros(bins, dtype=np.int64)
            np.add.at(out, indices, values)
            return out

        units, spread = (np.round(values / UNIT).astype(np.int64) for values in (confidences, confidences * (1 - confidences)))
        right = np.asarray(correct).astype(np.int64)
        return cls(np.bincount(indices, minlength=bins).astype(np.int64), summed(units), summed(right), summed(spread))

    def __add__(self, other: ReliabilityBins) -> ReliabilityBins:
        require(len(self.counts) == len(other.counts), "bins", f"{len(self.counts)} to be merged with these", len(other.counts))
        return ReliabilityBins(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def confidences(self) -> Array:
        """Sum of the confidences of each bin."""
        return self.confidence_units.astype(np.float64) * UNIT

    @property
    def variances(self) -> Array:
        return self.variance_units.astype(np.float64) * UNIT

    @property
    def edges(self) -> Array:
        return np.linspace(0, 1, len(self.counts) + 1)

    @property
    def shares(self) -> Array:
        """The share of all images that each bin holds."""
        shares: Array = self.counts / self.counts.sum()
        return shares

    @property
    def mean_confidences(self) -> Array:
        """NaN for a bin without images, as is its accuracy."""
        return self.confidences / np.where(self.counts > 0, self.counts, np.nan)

    @property
    def accuracies(self) -> Array:
        return self.correct / np.where(self.counts > 0, self.counts, np.nan)

    @property
    def intervals(self) -> Array:
        """The 95 % interval of each bin's accuracy (Wilson), bins x 2."""
        pairs = zip(self.correct.tolist(), self.counts.tolist(), strict=True)
        bounds = [wilson(right, count) if count else {"low": math.nan, "high": math.nan} for right, count in pairs]
        return np.array([[bin["low"], bin["high"]] for bin in bounds])

    @property
    def gaps(self) -> Array:
        """Confidence minus accuracy, summed over the images of each bin, as a share of all images."""
        gaps: Array = (self.confidences - self.correct) / self.counts.sum()
        return gaps

    @property
    def ece(self) -> float:
        """Expected calibration error: sum over bins of |accuracy - confidence| times the bin's share (Guo et al. 2017)."""
        return float(np.abs(self.gaps).sum())

    @property
    def rms(self) -> float:
        """Root of the mean over images of the squared gap of their bin (Hendrycks et al. 2019)."""
        return float(rms_of(self.gaps, self.shares))

    @property
    def max_error(self) -> float:
        """The largest |accuracy - confidence| of a bin that holds images (Guo et al. 2017)."""
        return float(max_error_of(self.gaps, self.shares))

    @property
    def signed_error(self) -> float:
        """Mean confidence minus accuracy: positive is overconfident."""
        return float(self.gaps.sum())

    @property
    def debiased_ece(self) -> float:
        """ECE without what noise adds to it; see `debiased_ece_of`."""
        return float(debiased_ece_of(self.gaps, self.variances, int(self.counts.sum())))


def bin_of(confidences: ArrayLike, bins: int) -> Whole:
    """The bin of each confidence: ((k - 1) / bins, k / bins], with 0 in the first and 1 in the last."""
    require(bins >= 1, "bins", "at least 1", bins)
    return np.clip(np.ceil(np.asarray(confidences, dtype=np.float64) * bins).astype(np.int64) - 1, 0, bins - 1)


def rms_of(gaps: Array, shares: Array) -> Any:
    """From gaps and shares (... x bins)."""
    return np.sqrt((np.square(gaps) / np.maximum(shares, np.finfo(np.float64).tiny)).sum(-1))


def adaptive_rms(confidences: ArrayLike, correct: ArrayLike, images_per_bin: int = 100) -> float:
    """RMS calibration error over bins of equally many images in the order of their confidence (Hendrycks et al. 2019).

    The last bin also has what is left over. Predictions that are perfectly calibrated do not reach 0: the share of right ones
    among n images differs from their confidence c by sqrt(c (1 - c) / n).
    """
    require(images_per_bin >= 1, "images_per_bin", "at least 1", images_per_bin)
    sure = np.asarray(confidences, dtype=np.float64)
    right = np.asarray(correct, dtype=np.float64)
    require(len(sure) > 0 and sure.shape == right.shape, "correct", "one for each of some confidences", right.shape)
    order = np.argsort(sure, kind="stable")
    starts = np.arange(max(1, len(sure) // images_per_bin)) * images_per_bin
    gaps = np.add.reduceat((sure - right)[order], starts)
    sizes = np.diff(np.append(starts, len(sure)))
    return float(np.sqrt((np.square(gaps) / sizes).sum() / len(sure)))


def max_error_of(gaps: Array, shares: Array) -> Any:
    """From gaps and shares (... x bins)."""
    return (np.abs(gaps) / np.where(shares > 0, shares, 1)).max(-1)


def debiased_ece_of(gaps: Array, variances: Array, images: ArrayLike) -> Any:
    """ECE by halves: the gap of one half of a bin with the sign that the other half gives it, on average over all halvings.

    Noise in the two halves is independent, so the mean is 0 for a perfectly calibrated model, where ECE itself is the mean of
    absolute values of noise; a gap that stands out of the noise counts in full. In the normal approximation, with G the bin's
    gap in images, S^2 = sum of c (1 - c) and z = G / S, a bin gives S (z erf(z / sqrt 2) - sqrt(2 / pi) exp(-z^2 / 2)).
    `images` is their number, one for each row of bins.
    """
    spread = np.maximum(np.sqrt(variances), UNIT)
    z = gaps * np.asarray(images)[..., None] / spread
    excess = spread * (z * erf(z / math.sqrt(2)) - math.sqrt(2 / math.pi) * np.exp(-np.square(z) / 2))
    return excess.sum(-1) / images


def reliability(predictions: Predictions, bins: int = 15) -> ReliabilityBins:
    """The reliability diagram's data."""
    require(len(predictions) > 0, "predictions", "of at least one image", 0)
    return ReliabilityBins.of(predictions.confidences.detach().cpu(), predictions.correct.cpu(), bins)


@dataclass(frozen=True)
class Entries:
    """The probabilities above the first bin, which are few: their image, their cell (class x bins + bin), and themselves."""

    images: Whole
    cells: Whole
    probabilities: NDArray[Any]

    @classmethod
    def of(cls, probabilities: NDArray[Any], bins: int) -> Entries:
        """From images x classes; the cell is the class alone until `binned`."""
        edge = probabilities.dtype.type((1 - 1e-6) / bins)  # a rounding below it; the bin itself decides
        flat = np.flatnonzero(probabilities > edge)
        images, classes = np.divmod(flat, probabilities.shape[1])
        return cls(images, classes, probabilities.reshape(-1)[flat])

    @classmethod
    def join(cls, parts: list[Entries], starts: list[int]) -> Entries:
        """Entries of batches that begin at these images."""
        images = [part.images + start for part, start in zip(parts, starts, strict=True)]
        cells, probabilities = [part.cells for part in parts], [part.probabilities for part in parts]
        return cls(np.concatenate(images), np.concatenate(cells), np.concatenate(probabilities))

    def binned(self, bins: int) -> Entries:
        """With their bins, and without those that are in the first."""
        values = self.probabilities.astype(np.float64)
        indices = bin_of(values, bins)
        kept = indices > 0
        return Entries(self.images[kept], self.cells[kept] * bins + indices[kept], values[kept])

    def class_matrix(self, labels: NDArray[Any], classes: int, bins: int) -> Any:
        """Rows whose products with weights are sums: of p - [label] in every cell, of images in every cell, of every label."""
        cells, everyone = classes * bins, np.arange(len(labels))
        hits = labels[self.images] == self.cells // bins
        values = np.concatenate([self.probabilities - hits, np.ones(len(self.cells) + len(labels))])
        rows = np.concatenate([self.cells, cells + self.cells, 2 * cells + labels])
        columns = np.concatenate([self.images, self.images, everyone])
        return sparse.csr_array((values, (rows, columns)), shape=(2 * cells + classes, len(labels)))


@dataclass(frozen=True)
class ClassSums:
    """For each class and bin (classes x bins x draws) the weight of its images and the sum of p - [label is the class]."""

    counts: Array
    gaps: Array
    labels: Array  # classes x draws: how often each class is the label

    @classmethod
    def of(cls, matrix: Any, weights: Array, totals: Array, bins: int) -> ClassSums:
        """The table under weights (draws x images); `totals` is the weighted sum of every class's probability, draws x classes.

        What is not in a bin above the first is in the first.
        """
        draws, classes = totals.shape
        sums, cells = matrix @ weights.T, classes * bins
        gaps, counts = (sums[start : start + cells].reshape(classes, bins, draws) for start in (0, cells))
        labels = sums[2 * cells :]
        gaps[:, 0] = totals.T - labels - gaps.sum(1)
        counts[:, 0] = labels.sum(0) - counts.sum(1)
        return cls(counts, gaps, labels)

    @property
    def images(self) -> Array:
        totals: Array = self.labels.sum(0)
        return totals

    @property
    def classwise_ece(self) -> Array:
        """Mean over classes of the ECE of "this class or not" (Kull et al. 2019)."""
        errors: Array = np.abs(self.gaps).sum(1).mean(0) / self.images
        return errors

    @property
    def brier_reliability(self) -> Array:
        """Sum over classes and bins of the share times the squared gap (Murphy 1973): 0 is best."""
        squared_gaps: Array = (np.square(self.gaps) / np.maximum(self.counts, 1)).sum((0, 1)) / self.images
        return squared_gaps

    @property
    def brier_uncertainty(self) -> Array:
        """Sum over classes of f (1 - f), with f the class's share of the labels (Murphy 1973)."""
        shares = self.labels / self.images
        uncertainty: Array = (shares * (1 - shares)).sum(0)
        return uncertainty


# Calibration error by a kernel instead of bins, with a width that the data choose.


CELLS = 512  # of the grid on which the density is held; it only has to be finer than the kernel
STEPS = 1024  # the width is between two of so many equal steps from 0 to 1, and then on their chord
DRAWS_AT_ONCE = 64  # so many densities stay in a processor's cache


def smooth_ece(confidences: ArrayLike, correct: ArrayLike, weights: Array) -> Array:
    """Smooth ECE (Blasiok and Nakkiran 2024) under weights (draws x images): one number for each draw.

    The residuals (right - confidence) are smoothed by a Gaussian kernel that is reflected at 0 and 1; the error is the integral
    of the absolute value; the width is the one that equals the error itself. Reflected smoothing is heat flow on [0, 1], which
    damps the n-th cosine of the residuals by exp(-(pi n width)^2 / 2).
    """
    matrix = residual_matrix(np.asarray(confidences, dtype=np.float64), np.asarray(correct, dtype=np.float64))
    waves = cosine_sums((matrix @ weights.T).T / weights.sum(1)[:, None])
    step, widths = 0, []
    for first in range(0, len(waves), DRAWS_AT_ONCE):
        steps, own = equal_widths(waves[first : first + DRAWS_AT_ONCE], step)
        step = int(np.median(steps))  # where the next draws are looked for first
        widths.append(own)
    return np.concatenate(widths)


def equal_widths(waves: Array, step: int) -> tuple[Array, Array]:
    """The width that equals the error, for each row of waves, and the step that it is in; looked for from `step`.

    The error falls with the width, so the difference of both crosses zero once: the chord of a step says in which to look next.
    """
    steps = np.full(len(waves), step)
    first, last = np.zeros(len(waves), np.int64), np.full(len(waves), STEPS - 1)
    below, above = np.zeros((2, len(waves)))
    rows = np.arange(len(waves))
    while len(rows):
        here = steps[rows]
        below[rows] = smoothed_error(waves[rows], here) - here / STEPS
        above[rows] = smoothed_error(waves[rows], here + 1) - (here + 1) / STEPS
        before, after = (below[rows] <= 0) & (here > 0), (above[rows] > 0) & (here < STEPS - 1)
        last[rows] = np.where(before, here - 1, last[rows])
        first[rows] = np.where(after, here + 1, first[rows])
        rows = rows[before | after]
        chord = np.floor(below[rows] / (below[rows] - above[rows])).astype(np.int64)
        steps[rows] = np.clip(steps[rows] + chord, first[rows], last[rows])
    low, high = steps / STEPS, (steps + 1) / STEPS
    return steps, low + (high - low) * below / np.maximum(below - above, np.finfo(np.float64).tiny)


def residual_matrix(confidences: Array, correct: Array) -> Any:
    """The residual of every image, shared between the two grid points beside its confidence: points x images."""
    positions, images = confidences * CELLS, np.arange(len(confidences))
    left = np.minimum(np.floor(positions), CELLS - 1).astype(np.int64)
    share, residuals = positions - left, correct - confidences
    values, rows = np.concatenate([residuals * (1 - share), residuals * share]), np.concatenate([left, left + 1])
    return sparse.csr_array((values, (rows, np.tile(images, 2))), shape=(CELLS + 1, len(images)))


def cosine_sums(grid: Array) -> Array:
    """Sum over grid points k of grid_k cos(pi n k / CELLS), for every wave n."""
    half = np.concatenate([grid[:, :1], grid[:, 1:-1] / 2, grid[:, -1:]], 1)
    return np.fft.rfft(np.concatenate([half, half[:, -2:0:-1]], 1)).real


@cache
def damping() -> Array:
    """What is left of every wave at every step of the width: steps x waves."""
    widths = np.arange(STEPS + 1) / STEPS
    left: Array = np.exp(np.square(math.pi * np.arange(CELLS + 1) * widths[:, None]) / -2)
    return left


def smoothed_error(waves: Array, steps: Array) -> Array:
    """The integral of the absolute value of the residuals, smoothed by so many steps of width, by the trapezoid rule."""
    density = np.abs(np.fft.irfft(waves * damping()[steps], 2 * CELLS, norm="forward")[:, : CELLS + 1])
    errors: Array = (density.sum(1) - (density[:, 0] + density[:, -1]) / 2) / CELLS
    return errors
