"""Bins of equal width: over the confidence, for the reliability diagram and ECE, and over each class's probability."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from ..errors import require
from ..intervals import wilson
from ..types import Predictions

UNIT = 2.0**-40  # sums are whole multiples of this, so that they do not depend on the order or on who adds them


@dataclass(frozen=True)
class ReliabilityBins:
    """For each bin the number of images, the sum of their confidences, how many were right, and the sum of c (1 - c).

    All are whole numbers (sums count units of 2^-40), so bins of batches or processes add up (`+`) to the very same bins in any
    order. The sum of c (1 - c) is the variance of the number of right answers of a perfectly calibrated model.
    """

    counts: Tensor  # int64
    confidence_units: Tensor  # int64
    correct: Tensor  # int64
    variance_units: Tensor  # int64

    @classmethod
    def of(cls, confidences: Tensor, correct: Tensor, bins: int) -> ReliabilityBins:
        """The bins of some answers."""
        confidences, correct = confidences.double().cpu(), correct.cpu()
        place = bin_of(confidences, bins)
        units, spread = ((values / UNIT).round().long() for values in (confidences, confidences * (1 - confidences)))

        def summed(values: Tensor) -> Tensor:
            return torch.zeros(bins, dtype=torch.long).index_add_(0, place, values)

        return cls(place.bincount(minlength=bins), summed(units), summed(correct.long()), summed(spread))

    def __add__(self, other: ReliabilityBins) -> ReliabilityBins:
        require(len(self.counts) == len(other.counts), "bins", f"{len(self.counts)} to be merged with these", len(other.counts))
        return ReliabilityBins(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def confidences(self) -> Tensor:
        """Sum of the confidences of each bin."""
        return self.confidence_units.double() * UNIT

    @property
    def variances(self) -> Tensor:
        return self.variance_units.double() * UNIT

    @property
    def edges(self) -> Tensor:
        return torch.linspace(0, 1, len(self.counts) + 1, dtype=torch.float64)

    @property
    def shares(self) -> Tensor:
        """The share of all images that each bin holds."""
        return self.counts.double() / self.counts.sum()

    @property
    def mean_confidences(self) -> Tensor:
        """NaN for a bin without images, as is its accuracy."""
        return self.confidences / self.counts

    @property
    def accuracies(self) -> Tensor:
        return self.correct.double() / self.counts

    @property
    def intervals(self) -> Tensor:
        """The 95 % interval of each bin's accuracy (Wilson), bins x 2."""
        pairs = zip(self.correct.tolist(), self.counts.tolist(), strict=True)
        found = [wilson(right, count) if count else {"low": math.nan, "high": math.nan} for right, count in pairs]
        return torch.tensor([[bin["low"], bin["high"]] for bin in found], dtype=torch.float64)

    @property
    def gaps(self) -> Tensor:
        """Confidence minus accuracy, summed over the images of each bin, as a share of all images."""
        return (self.confidences - self.correct) / self.counts.sum()

    @property
    def ece(self) -> float:
        """Expected calibration error: sum over bins of |accuracy - confidence| times the bin's share (Guo et al. 2017)."""
        return float(self.gaps.abs().sum())

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


def bin_of(confidences: Tensor, bins: int) -> Tensor:
    """The bin of each confidence: ((k - 1) / bins, k / bins], with 0 in the first and 1 in the last."""
    require(bins >= 1, "bins", "at least 1", bins)
    return (confidences.double() * bins).ceil().long().sub_(1).clamp_(0, bins - 1)


def rms_of(gaps: Tensor, shares: Tensor) -> Tensor:
    """From gaps and shares (... x bins)."""
    return (gaps.square() / shares.clamp_min(torch.finfo(shares.dtype).tiny)).sum(-1).sqrt()


def max_error_of(gaps: Tensor, shares: Tensor) -> Tensor:
    """From gaps and shares (... x bins)."""
    return (gaps.abs() / shares.where(shares > 0, 1)).amax(-1)


def debiased_ece_of(gaps: Tensor, variances: Tensor, images: int) -> Tensor:
    """ECE by halves: the gap of one half of a bin with the sign that the other half gives it, on average over all halvings.

    Noise in the two halves is independent, so the mean is 0 for a perfectly calibrated model, where ECE itself is the mean of
    absolute values of noise; a gap that stands out of the noise counts in full. In the normal approximation, with G the bin's
    gap in images, S^2 = sum of c (1 - c) and z = G / S, a bin gives S (z erf(z / sqrt 2) - sqrt(2 / pi) exp(-z^2 / 2)).
    """
    spread = variances.sqrt().clamp_min(UNIT)
    z = gaps * images / spread
    found = spread * (z * torch.erf(z / math.sqrt(2)) - math.sqrt(2 / math.pi) * torch.exp(-z.square() / 2))
    return found.sum(-1) / images


def reliability(predictions: Predictions, bins: int = 15) -> ReliabilityBins:
    """The reliability diagram's data."""
    require(len(predictions) > 0, "predictions", "of at least one image", 0)
    return ReliabilityBins.of(predictions.confidences, predictions.correct, bins)


@dataclass(frozen=True)
class Entries:
    """The probabilities above the first bin, which are few: their image, their cell (class x bins + bin), and themselves."""

    images: Tensor
    cells: Tensor
    probabilities: Tensor

    @classmethod
    def of(cls, probabilities: Tensor, bins: int) -> Entries:
        """From images x classes; the cell is the class alone until `binned`."""
        values = probabilities.numpy()
        edge = values.dtype.type((1 - 1e-6) / bins)  # a rounding below it; the bin itself decides
        flat = torch.from_numpy(np.flatnonzero(values > edge))
        classes = probabilities.shape[1]
        return cls(flat // classes, flat % classes, probabilities.view(-1)[flat])

    @classmethod
    def join(cls, parts: list[Entries], starts: list[int]) -> Entries:
        """Entries of batches that begin at these images."""
        images = [part.images + start for part, start in zip(parts, starts, strict=True)]
        return cls(torch.cat(images), torch.cat([p.cells for p in parts]), torch.cat([p.probabilities for p in parts]))

    def binned(self, bins: int) -> Entries:
        """With their bins, and without those that are in the first."""
        values = self.probabilities.double()
        place = bin_of(values, bins)
        kept = place > 0
        return Entries(self.images[kept], self.cells[kept] * bins + place[kept], values[kept])

    def summed(self, values: Tensor, weights: Tensor, classes: int, bins: int) -> Tensor:
        """Sums of `values` (one for each entry) under weights (draws x images): draws x classes x bins, first bin empty."""
        shape = (classes * bins, weights.shape[1])
        matrix = torch.sparse_coo_tensor(torch.stack([self.cells, self.images]), values, shape, check_invariants=False)
        found: Tensor = torch.sparse.mm(matrix, weights.T.contiguous())
        return found.T.reshape(len(weights), classes, bins)


@dataclass(frozen=True)
class ClassSums:
    """For each class and bin (draws x classes x bins) the weight of its images and the sum of p - [label is the class]."""

    counts: Tensor
    gaps: Tensor
    labels: Tensor  # draws x classes: how often each class is the label

    @property
    def images(self) -> Tensor:
        return self.labels.sum(-1)

    @property
    def classwise_ece(self) -> Tensor:
        """Mean over classes of the ECE of "this class or not" (Kull et al. 2019)."""
        return self.gaps.abs().sum(-1).mean(-1) / self.images

    @property
    def brier_reliability(self) -> Tensor:
        """Sum over classes and bins of the share times the squared gap (Murphy 1973): 0 is best."""
        return (self.gaps.square() / self.counts.clamp_min(1)).sum((-1, -2)) / self.images

    @property
    def brier_uncertainty(self) -> Tensor:
        """Sum over classes of f (1 - f), with f the class's share of the labels (Murphy 1973)."""
        shares = self.labels / self.images.unsqueeze(-1)
        return (shares * (1 - shares)).sum(-1)


def class_sums(entries: Entries, labels: Tensor, weights: Tensor, totals: Tensor, bins: int) -> ClassSums:
    """The table under weights (draws x images); `totals` is the weighted sum of every class's probability, draws x classes.

    What is not in a bin above the first is in the first.
    """
    draws, classes = totals.shape
    hits = labels[entries.images] == entries.cells // bins
    gaps = entries.summed(entries.probabilities - hits.double(), weights, classes, bins)
    counts = entries.summed(torch.ones_like(entries.probabilities), weights, classes, bins)
    label_counts = torch.zeros(classes, draws, dtype=weights.dtype).index_add_(0, labels, weights.T).T
    gaps[..., 0] = totals - label_counts - gaps.sum(-1)
    counts[..., 0] = label_counts.sum(-1, keepdim=True) - counts.sum(-1)
    return ClassSums(counts, gaps, label_counts)
