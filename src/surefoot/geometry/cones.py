"""Whether decision regions are cones around the origin: cone index, dependence on the bias, angles of confident features."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Features, Labels, check_labels
from .centres import class_centres
from .evaluation import slices
from .heads import at_least_single, check_features, head_predictions, mean_and_deviation, weights_of


@dataclass(frozen=True)
class ConeIndex:
    """When the class of each feature first changes on its way to the origin, in steps of `steps` (representation-space Tab. 5).

    A class that never changes before the origin has the index `steps`; `full` is the share of these.
    """

    values: Tensor
    steps: int
    mean: float
    std: float
    full: float


def cone_index(
    head: nn.Linear, features: Features, steps: int = 100, batch_size: int = 1024, progress: bool = False
) -> ConeIndex:
    """The exact index, steps (1 - t), where t is the largest scale below 1 at which t f has another class than f.

    Give it the features that are classified correctly, as the paper does. Along t f the lead of class y over c is
    t (a_y - a_c) + b_y - b_c with a = W f: a line in t, which is positive at 1 and so crosses 0 only if b_c > b_y,
    at t_c = (b_c - b_y) / (a_y - a_c).
    """
    require(steps >= 1, "steps", "at least 1", steps)
    weight, bias = weights_of(head)
    check_features(features, weight.shape[1])
    scale = torch.empty(len(features), dtype=weight.dtype, device=features.device)
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "cones"):
            products = features[part].to(weight.dtype) @ weight.T
            scale[part] = last_crossing(products, bias, (products + bias).argmax(1))
    return as_cone_index(steps * (1 - scale), steps)


def last_crossing(products: Tensor, bias: Tensor, classes: Tensor) -> Tensor:
    """The largest t in [0, 1] at which t a + b (a: images x classes) no longer has its maximum at these classes.

    Overwrites the products.
    """
    best = products.gather(1, classes[:, None])
    lead = products.neg_().add_(best)  # a_y - a_c
    behind = bias - bias[classes, None]  # b_c - b_y
    tiny = torch.finfo(lead.dtype).tiny
    return behind.clamp_min_(0).div_(lead.clamp_min_(tiny)).amax(1).clamp_max_(1)


def as_cone_index(values: Tensor, steps: int) -> ConeIndex:
    """With the mean, the deviation and the share of full cones."""
    full = float((values >= steps).double().mean())
    return ConeIndex(values, steps, *mean_and_deviation(values), full)


def stepped_cone_index(
    head: nn.Linear, features: Features, steps: int = 100, batch_size: int = 1024, progress: bool = False
) -> ConeIndex:
    """The paper's procedure: the first of `steps` equal steps to the origin after which the class is another one.

    Step k stands at (1 - k / steps) f. The last one is the origin itself, where only the bias speaks: it does not count.
    """
    require(steps >= 1, "steps", "at least 1", steps)
    weight, bias = weights_of(head)
    check_features(features, weight.shape[1])
    indices = torch.full((len(features),), float(steps), dtype=weight.dtype, device=features.device)
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "steps"):
            products = features[part].to(weight.dtype) @ weight.T
            classes = (products + bias).argmax(1)
            for step in range(steps - 1, 0, -1):
                changed = torch.add(bias, products, alpha=1 - step / steps).argmax(1) != classes
                indices[part][changed] = float(step)
    return as_cone_index(indices, steps)


@dataclass(frozen=True)
class BiasDependence:
    """|b_c| and n'_c / n_c over classes (representation-space App. D, Tab. 6).

    `values` is for each class the share of its correct predictions that change without the bias; NaN for a class without any,
    which `mean`, `std` and `largest` leave out.
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
    head: nn.Linear, features: Features, labels: Labels, batch_size: int = 1024, progress: bool = False
) -> BiasDependence:
    """For each class, how many of its correct predictions would change if the logits were W f instead of W f + b."""
    weight, bias = weights_of(head)
    check_features(features, weight.shape[1])
    labels = check_labels(labels, len(weight), len(features))
    with_bias, without = torch.empty_like(labels), torch.empty_like(labels)
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "bias"):
            products = features[part].to(weight.dtype) @ weight.T
            without[part] = products.argmax(1)
            with_bias[part] = products.add_(bias).argmax(1)
    return bias_dependence_of(bias, with_bias, without, labels)


def bias_dependence_of(bias: Tensor, with_bias: Tensor, without: Tensor, labels: Labels) -> BiasDependence:
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


@dataclass(frozen=True)
class ConfidenceAngles:
    """For each class, the two confident features that point furthest from the class centre, one to each side.

    `values` is the angle between them in degrees, `sides` (classes x 2) their signed angles from the centre, clockwise first,
    `places` their indices among the features. NaN and -1 for a class without a confident feature.
    """

    threshold: float
    values: Tensor
    sides: Tensor
    places: Tensor


def confidence_angles(
    head: nn.Linear, features: Features, threshold: float = 0.99, centres: Tensor | None = None
) -> ConfidenceAngles:
    """The opening of the sector of features with a confidence above `threshold`, for two-dimensional features.

    The class is the predicted one; the centres are the minimum-loss points unless given.
    """
    require(head.in_features == 2, "features", "of 2 dimensions", head.in_features)
    require(0 < threshold < 1, "threshold", "between 0 and 1", threshold)
    classes, confidence = head_predictions(head, features, max(len(features), 1), False)
    middle = at_least_single(class_centres(head) if centres is None else centres)[classes]
    points = at_least_single(features)
    across = middle[:, 0] * points[:, 1] - middle[:, 1] * points[:, 0]
    turned = torch.rad2deg(torch.atan2(across, (middle * points).sum(1)))
    count = head.out_features
    sides = torch.full((count, 2), float("nan"), dtype=turned.dtype, device=turned.device)
    indices = torch.full((count, 2), -1, device=turned.device)
    for label in range(count):
        chosen = ((classes == label) & (confidence > threshold)).nonzero().flatten()
        if len(chosen):
            ends = torch.stack([turned[chosen].argmin(), turned[chosen].argmax()])
            sides[label], indices[label] = turned[chosen][ends], chosen[ends]
    return ConfidenceAngles(threshold, sides[:, 1] - sides[:, 0], sides, indices)
