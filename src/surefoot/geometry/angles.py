"""How far a feature may turn from its class centre and still be sure (representation-space Fig. 6)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Features
from .centre_comparison import answers
from .centres import class_centres
from .heads import at_least_single


@dataclass(frozen=True)
class ConfidenceAngles:
    """For each class, the two sure features that point furthest from the class centre, one to each side.

    `values` is the angle between them in degrees, `sides` (classes x 2) their signed angles from the centre, clockwise first,
    `places` their places among the features. NaN and -1 for a class that no feature is sure of.
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
    classes, confidence = answers(head, features, max(len(features), 1), False)
    middle = at_least_single(class_centres(head) if centres is None else centres)[classes]
    points = at_least_single(features)
    across = middle[:, 0] * points[:, 1] - middle[:, 1] * points[:, 0]
    turned = torch.rad2deg(torch.atan2(across, (middle * points).sum(1)))
    count = head.out_features
    sides = torch.full((count, 2), float("nan"), dtype=turned.dtype, device=turned.device)
    places = torch.full((count, 2), -1, device=turned.device)
    for label in range(count):
        chosen = ((classes == label) & (confidence > threshold)).nonzero().flatten()
        if len(chosen):
            ends = torch.stack([turned[chosen].argmin(), turned[chosen].argmax()])
            sides[label], places[label] = turned[chosen][ends], chosen[ends]
    return ConfidenceAngles(threshold, sides[:, 1] - sides[:, 0], sides, places)
