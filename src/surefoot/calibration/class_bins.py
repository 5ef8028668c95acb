"""Bins for each class's probability: class-wise ECE, and the parts of the Brier score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .bins import bin_of


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
