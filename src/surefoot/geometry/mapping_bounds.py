"""What compactness on the training set says about the test set (discriminative Thm 6.2): mostly that the bound is vacuous."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import require
from ..types import Features


@dataclass(frozen=True)
class MappingBound:
    """The right side of discriminative Eq. 19 and its three parts; `verdict` is 'vacuous' where it cannot say anything."""

    bound: float
    empirical: float
    capacity: float
    confidence: float
    outside: float  # the share of these features outside the ball
    verdict: str
    note: str


def mapping_bound(
    features: Features,
    centre: Tensor,
    radius: float = 1.0,
    rho: float = 0.5,
    *,
    centre_bound: float | None = None,
    feature_bound: float | None = None,
    delta: float = 0.05,
) -> MappingBound:
    """P(||f(X) - m|| > r) <= empirical + 2/rho (Lambda^2 + 2 R Lambda + R^2 / sqrt(N)) + 3 sqrt(log(2/delta) / 2N)  (Thm 6.2).

    For the features of one class. Without `centre_bound` (R) and `feature_bound` (Lambda) they are the norms seen, which the
    theorem does not allow but which favour it. Where R <= Lambda the capacity term alone is above 1.
    """
    require(features.ndim == 2 and len(features) > 0, "features", "at least one, images x dimensions", tuple(features.shape))
    require(centre.shape == features.shape[1:], "centre", f"of {features.shape[1]} dimensions", tuple(centre.shape))
    require(radius > 0, "radius", "positive", radius)
    require(0 < rho < radius**2, "rho", f"between 0 and radius^2 = {radius**2:g}", rho)
    require(0 < delta < 1, "delta", "between 0 and 1", delta)
    features, centre = features.detach().double(), centre.detach().double()
    largest = float(torch.linalg.vector_norm(features, dim=1).max()) if feature_bound is None else feature_bound
    middle = float(torch.linalg.vector_norm(centre)) if centre_bound is None else centre_bound
    inside = radius**2 - (features - centre).square().sum(1)
    empirical = float((1 - inside / rho).clamp(0, 1).mean())
    count = len(features)
    capacity = 2 / rho * (largest**2 + 2 * middle * largest + middle**2 / math.sqrt(count))
    confidence = 3 * math.sqrt(math.log(2 / delta) / (2 * count))
    bound = empirical + capacity + confidence
    trivial = radius >= middle + largest
    verdict = "vacuous" if bound >= 1 or trivial else f"at most {bound:.3f}"
    reason = "no bounded feature can be outside a ball this large" if trivial else "a probability is at most 1 anyway"
    note = (
        f"{reason}; R = {middle:.4g}, Lambda = {largest:.4g}"
        if verdict == "vacuous"
        else f"R = {middle:.4g}, Lambda = {largest:.4g}"
    )
    return MappingBound(bound, empirical, capacity, confidence, float((inside < 0).double().mean()), verdict, note)
