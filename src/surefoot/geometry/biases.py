"""How much of a classifier's answers rests on the bias of its last layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..types import Features, Labels, check_labels
from .batching import slices
from .feature_distribution import mean_and_deviation
from .heads import check_features, weights_of


@dataclass(frozen=True)
class BiasDependence:
    """|b_c| and n'_c / n_c over classes (representation-space App. D, Tab. 6).

    `values` is for each class the share of its correct answers that change without the bias; NaN for a class without any, which
    `mean`, `std` and `largest` leave out.
    """

    values: Tensor
    mean: float
    std: float
    largest: float
    bias: Tensor
    bias_mean: float
    bias_std: float
    bias_largest: float


def bias_dependence(
    head: nn.Linear, features: Features, labels: Labels, batch_size: int = 4096, progress: bool = False
) -> BiasDependence:
    """For each class, how many of its correct answers would change if the logits were W f instead of W f + b."""
    weight, bias = weights_of(head)
    check_features(features, weight.shape[1])
    labels = check_labels(labels, len(weight), len(features))
    with_bias, without = torch.empty_like(labels), torch.empty_like(labels)
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "bias"):
            products = features[part].to(weight.dtype) @ weight.T
            without[part] = products.argmax(1)
            with_bias[part] = products.add_(bias).argmax(1)
    return tallied(bias, with_bias, without, labels)


def tallied(bias: Tensor, with_bias: Tensor, without: Tensor, labels: Labels) -> BiasDependence:
    """The shares from the classes with and without bias."""
    right = with_bias == labels
    counts = torch.bincount(labels[right], minlength=len(bias))
    changed = torch.bincount(labels[right & (without != with_bias)], minlength=len(bias))
    shares = changed.double() / counts
    size = bias.abs()
    largest = float(shares.nan_to_num(-1).max())
    return BiasDependence(
        shares,
        *mean_and_deviation(shares),
        largest if largest >= 0 else float("nan"),
        bias.clone(),
        *mean_and_deviation(size),
        float(size.max()),
    )
