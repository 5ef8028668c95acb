"""Class centroids of clean features, by batch and with momentum (discriminative-noise section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..types import Features, Labels
from .gathering import summed


@dataclass(frozen=True)
class ClassMeans:
    """The mean feature of each class of the global batch; classes that are not in it are left out."""

    present: Tensor  # class numbers, ascending
    counts: Tensor  # images of each present class
    means: Tensor  # present classes x dimensions, with gradient

    def place_of(self, labels: Labels) -> Tensor:
        """The row of each label's class."""
        return torch.searchsorted(self.present, labels)


def class_means(features: Features, labels: Labels, num_classes: int) -> ClassMeans:
    """Means over all processes, of the classes that any of them has."""
    sums = summed(features.new_zeros(num_classes, features.shape[1]).index_add(0, labels, features))
    counts = summed(labels.bincount(minlength=num_classes).to(features.dtype))
    present = counts.nonzero().flatten()
    return ClassMeans(present, counts[present], sums[present] / counts[present, None])


def with_momentum(means: ClassMeans, old: Tensor, seen: Tensor, momentum: float) -> Tensor:
    """momentum * old + (1 - momentum) * batch mean for each present class, with gradient through the batch mean only.

    A class that was never seen starts at its batch mean.
    """
    before = old[means.present].detach().to(means.means.dtype)
    moved = momentum * before + (1 - momentum) * means.means
    return torch.where(seen[means.present, None], moved, means.means)
