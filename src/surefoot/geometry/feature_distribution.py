"""How large features are, how well they point to their class centre, and what that has to do with attacks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import require
from ..types import Features, Labels, check_labels
from .centre_comparison import cosines, feature_norms
from .heads import check_features


@dataclass(frozen=True)
class FeatureStatistics:
    """RMS of each feature and its cosine to the class centre, with mean and deviation (representation-space Tab. 2).

    The deviation is that of the images at hand (divided by their number). A class without a centre gives NaN, left out of both.
    """

    rms: Tensor
    cosine: Tensor
    rms_mean: float
    rms_std: float
    cosine_mean: float
    cosine_std: float


@dataclass(frozen=True)
class SuccessByBin:
    """A histogram of a value with the attack's success in each bin (representation-space Fig. 3, middle row).

    `values` is the success rate among the images of the bin that were right before; NaN where there is none.
    """

    edges: Tensor
    counts: Tensor
    values: Tensor


def feature_statistics(features: Features, centres: Tensor, labels: Labels, batch_size: int = 4096) -> FeatureStatistics:
    """RMS of each feature and its cosine to the centre of its class (representation-space 4.1).

    `labels` are the classes whose centre counts: the papers' correlations take the predicted ones.
    """
    check_features(features, centres.shape[1])
    labels = check_labels(labels, len(centres), len(features))
    rms = root_mean_square(features, batch_size)
    cosine = cosines(features, centres, labels, batch_size)
    return summarised(rms, cosine)


def summarised(rms: Tensor, cosine: Tensor) -> FeatureStatistics:
    """With the means and deviations."""
    return FeatureStatistics(rms, cosine, *mean_and_deviation(rms), *mean_and_deviation(cosine))


def root_mean_square(features: Features, batch_size: int = 4096) -> Tensor:
    """sqrt(mean of the squared entries) of each feature, which compares over dimensions as the norm does not."""
    return feature_norms(features, batch_size).div_(features.shape[1] ** 0.5)


def mean_and_deviation(values: Tensor) -> tuple[float, float]:
    """Mean and deviation of the finite values, NaN without any."""
    exact = values[values.isfinite()].double()
    mean = exact.mean()
    return float(mean), float((exact - mean).square().mean().sqrt())


def success_by_bin(values: Tensor, broken: Tensor, correct: Tensor, bins: int = 20) -> SuccessByBin:
    """Attack success in equal bins of a value such as the cosine to the centre, counted among the images right before.

    `broken` says which images the attack turned from right to wrong (`AttackResult.broken`), `correct` which were right before.
    """
    require(bins >= 1, "bins", "at least 1", bins)
    require(values.ndim == 1 and len(values) > 0, "values", "one for each of some images", tuple(values.shape))
    for name, mask in (("broken", broken), ("correct", correct)):
        require(mask.shape == values.shape and mask.dtype == torch.bool, name, "True or False for each image", mask.dtype)
    require(not bool((broken & ~correct).any()), "broken", "only images that were right before", int((broken & ~correct).sum()))
    known = values.isfinite()
    require(bool(known.any()), "values", "finite for at least one image", "none")
    values, broken, correct = values[known].double(), broken[known], correct[known]
    low, high = (float(v) for v in values.aminmax())
    edges = torch.linspace(low, high, bins + 1, dtype=torch.float64, device=values.device)
    place = torch.bucketize(values, edges[1:-1].contiguous(), right=True)

    def count(mask: Tensor) -> Tensor:
        return torch.bincount(place[mask], minlength=bins)

    return SuccessByBin(edges, torch.bincount(place, minlength=bins), count(broken) / count(correct))
