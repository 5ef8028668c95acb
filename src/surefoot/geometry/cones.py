"""Are decision regions cones around the origin? Move each feature to the origin and see when its class changes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Features
from .batching import slices
from .feature_distribution import mean_and_deviation
from .heads import check_features, weights_of


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
    head: nn.Linear, features: Features, steps: int = 100, batch_size: int = 4096, progress: bool = False
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

    The products are used up.
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
    head: nn.Linear, features: Features, steps: int = 100, batch_size: int = 4096, progress: bool = False
) -> ConeIndex:
    """The paper's procedure: the first of `steps` equal steps to the origin after which the class is another one.

    Step k stands at (1 - k / steps) f. The last one is the origin itself, where only the bias speaks: it does not count.
    """
    require(steps >= 1, "steps", "at least 1", steps)
    weight, bias = weights_of(head)
    check_features(features, weight.shape[1])
    found = torch.full((len(features),), float(steps), dtype=weight.dtype, device=features.device)
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "steps"):
            products = features[part].to(weight.dtype) @ weight.T
            classes = (products + bias).argmax(1)
            for step in range(steps - 1, 0, -1):
                changed = torch.add(bias, products, alpha=1 - step / steps).argmax(1) != classes
                found[part][changed] = float(step)
    return as_cone_index(found, steps)
