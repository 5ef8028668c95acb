"""Bounds from compact and separated classes: on the test set (discriminative Thm 6.2) and at earlier layers (Thm 6.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import require
from ..seeds import generator
from ..types import Features, Labels
from .evaluation import slices
from .heads import at_least_single, check_not_empty

SEPARATION_NOTE = (
    "The bound needs disjoint balls and the whole state of the earlier layer. The estimate is log 2 minus the held-out loss of"
    " a linear classifier of the two classes, so it lies below the divergence itself, but for sampling error. In nats."
)
STRENGTHS = (1e-3, 1e-1, 10.0)


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
    check_not_empty(features)
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


@dataclass(frozen=True)
class ClassSeparation:
    """For each pair of classes: `values` is the estimated divergence; `bound` holds for every pair if `disjoint`."""

    values: Tensor
    pairs: tuple[tuple[int, int], ...]
    bound: float
    tau: float
    disjoint: bool
    note: str = SEPARATION_NOTE


def divergence_bound(tau: float) -> float:
    """(2 tau - 1)^2 / 2 for tau of at least 1/2, else 0, which always holds (discriminative Eq. 20)."""
    require(0 <= tau <= 1, "tau", "between 0 and 1", tau)
    return (2 * tau - 1) ** 2 / 2 if tau > 0.5 else 0.0


def jensen_shannon_divergence(first: Tensor, second: Tensor) -> float:
    """The divergence of two distributions over a finite alphabet, in nats (discriminative Def. G.2)."""
    first, second = first.double(), second.double()
    middle = (first + second) / 2
    parts = [torch.xlogy(p, p) - torch.xlogy(p, middle) for p in (first, second)]
    return float(sum(part.sum() for part in parts) / 2)


def separation_bound(features: Features, labels: Labels, radius: float = 0.5) -> tuple[float, float, bool]:
    """tau, the bound, and whether the balls are disjoint: (H) of Thm 6.3 for balls of `radius` around the class means."""
    check_not_empty(features)
    require(radius > 0, "radius", "positive", radius)
    classes = labels.unique()
    require(len(classes) >= 2, "labels", "of at least 2 classes", len(classes))
    features = at_least_single(features.detach())
    means = torch.stack([features[labels == number].mean(0) for number in classes])
    rows = torch.searchsorted(classes, labels)
    inside = torch.linalg.vector_norm(features - means[rows], dim=1) <= radius
    tau = min(float(inside[labels == number].double().mean()) for number in classes)
    disjoint = float(torch.pdist(means).min()) > 2 * radius
    return tau, divergence_bound(tau) if disjoint else 0.0, disjoint


def class_separation(
    layer_features: Tensor,
    features: Features,
    labels: Labels,
    radius: float = 0.5,
    *,
    pairs: int = 10,
    seed: int = 0,
    progress: bool = False,
) -> ClassSeparation:
    """Thm 6.3's lower bound from the penultimate `features` against an estimate at an earlier layer, for some pairs of classes.

    Pairs are drawn by seed where there are more than `pairs`.
    """
    require(len(layer_features) == len(labels) == len(features), "layer_features", "as many as labels", len(layer_features))
    require(pairs >= 1, "pairs", "at least 1", pairs)
    labels = labels.cpu()
    tau, bound, disjoint = separation_bound(features.cpu(), labels, radius)
    every = torch.combinations(labels.unique())
    chosen = every[torch.randperm(len(every), generator=generator(seed, "pairs"))[:pairs].sort().values]
    flat = layer_features.detach().cpu().flatten(1).double()
    divergences = []
    for part in slices(len(chosen), 1, progress, "class separation"):
        first, second = chosen[part.start].tolist()
        divergences.append(estimated_divergence(flat[labels == first], flat[labels == second]))
    listed = tuple((int(a), int(b)) for a, b in chosen)
    return ClassSeparation(torch.tensor(divergences, dtype=torch.float64), listed, bound, tau, disjoint)


def estimated_divergence(first: Tensor, second: Tensor) -> float:
    """log 2 minus the two-fold held-out cross-entropy of a logistic regression, classes weighted equally; at least 0.

    How strongly it is regularised is chosen by the loss on the other fold.
    """
    require(min(len(first), len(second)) >= 2, "layer_features", "at least 2 of each class", (len(first), len(second)))
    losses = torch.tensor([held_out_losses(first, second, fold) for fold in (0, 1)])
    chosen = losses.argmin(1)
    loss = float(losses[0, chosen[1]] + losses[1, chosen[0]]) / 2
    return max(math.log(2) - loss, 0.0)


def held_out_losses(first: Tensor, second: Tensor, fold: int) -> list[float]:
    """The held-out loss for each strength, trained on every second image of both classes."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    train = torch.cat([first[fold::2], second[fold::2]]).numpy()
    labels = [0] * len(first[fold::2]) + [1] * len(second[fold::2])
    scaler = StandardScaler().fit(train)
    means = []
    for strength in STRENGTHS:
        fitted = LogisticRegression(C=strength, class_weight="balanced", max_iter=1000).fit(scaler.transform(train), labels)
        heights = [fitted.decision_function(scaler.transform(features[1 - fold :: 2].numpy())) for features in (first, second)]
        losses = [F.softplus(torch.as_tensor(sign * height)) for sign, height in zip((1, -1), heights, strict=True)]
        means.append(float(losses[0].mean() + losses[1].mean()) / 2)
    return means
