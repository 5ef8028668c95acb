"""Neural collapse (Papyan, Han and Donoho 2020): how near features and weights are to one simplex."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Features, Labels, check_labels
from .centres import class_sums
from .evaluation import slices
from .heads import check_features, weights_of


@dataclass(frozen=True)
class NeuralCollapse:
    """All are 0 where the collapse is complete; classes without images are left out and `classes` counts the others.

    within_class: tr(S_W S_B^+) / classes (NC1). equinorm: deviation of the norms of the centred class means over their mean;
    equiangularity: deviation of their cosines; maximal_angle: mean |cosine + 1 / (classes - 1)| (NC2), each for the means and
    for the weights as they are. self_duality: ||W / |W| - M / |M|||^2 in Frobenius norm, M the centred means (NC3).
    """

    within_class: float
    equinorm: float
    equiangularity: float
    maximal_angle: float
    weight_equinorm: float
    weight_equiangularity: float
    weight_maximal_angle: float
    self_duality: float
    classes: int


def neural_collapse(
    head: nn.Linear, features: Features, labels: Labels, batch_size: int = 1024, progress: bool = False
) -> NeuralCollapse:
    """The measures of Papyan et al. on these features, meant for those of the training images, right or wrong.

    The means are centred on the mean of the class means. No matrix of dimensions x dimensions or images x images is made: S_B^+
    comes from the classes x classes products of the centred means.
    """
    weight, _ = weights_of(head)
    check_features(features, weight.shape[1])
    labels = check_labels(labels, len(weight), len(features))
    return collapse_of(weight, features, labels, *class_sums(features, labels, len(weight), batch_size), batch_size, progress)


def collapse_of(
    weight: Tensor, features: Features, labels: Labels, sums: Tensor, counts: Tensor, batch_size: int, progress: bool
) -> NeuralCollapse:
    """The measures, from the sum and the number of the features of each class besides."""
    present = counts > 0
    require(int(present.sum()) >= 2, "labels", "of at least 2 classes", int(present.sum()))
    means = sums / counts.clamp_min(1)[:, None]
    centred, kept = means[present] - means[present].mean(0), weight[present].double()
    root = inverse_root(centred).to(weight.dtype)
    within = within_class(features, labels, means.to(weight.dtype), root, batch_size, progress)
    gap = kept / kept.norm() - centred / centred.norm()
    of_means, of_weights = simplex_distance(centred), simplex_distance(kept)
    return NeuralCollapse(within / len(centred), *of_means, *of_weights, float(gap.square().sum()), len(centred))


def inverse_root(centred: Tensor) -> Tensor:
    """R (dimensions x rank) with R R^T = S_B^+, where S_B is the mean of the outer products of the centred means."""
    values, vectors = torch.linalg.eigh(centred @ centred.T)
    kept = values > values[-1] * max(centred.shape) * torch.finfo(values.dtype).eps
    # centred = U s V^T, so S_B^+ = classes V s^-2 V^T and V = centred^T U / s
    # without any distance between the means nothing is kept, and there is nothing to compare with
    if not bool(kept.any()) or float(values[-1]) <= 0:
        return centred.new_full((centred.shape[1], 1), torch.nan)
    root: Tensor = centred.T @ (vectors[:, kept] / values[kept]) * len(centred) ** 0.5
    return root


def within_class(features: Features, labels: Labels, means: Tensor, root: Tensor, batch_size: int, progress: bool) -> float:
    """tr(S_W S_B^+), S_W the mean over images of the outer products of what is left without the class mean."""
    total = 0.0
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "collapse"):
            left = features[part].to(means.dtype) - means[labels[part]]
            total += float((left @ root).square_().sum(1).double().sum())
    return total / len(features)


def simplex_distance(points: Tensor) -> tuple[float, float, float]:
    """Equinorm, equiangularity and distance from the largest possible angle."""
    norms = torch.linalg.vector_norm(points, dim=1)
    units = points / norms.clamp_min(torch.finfo(points.dtype).tiny)[:, None]
    count = len(points)
    cosine = (units @ units.T)[~torch.eye(count, dtype=torch.bool, device=points.device)]
    deviation = float(norms.std(correction=0) / norms.mean())
    return deviation, float(cosine.std(correction=0)), float((cosine + 1 / (count - 1)).abs().mean())
