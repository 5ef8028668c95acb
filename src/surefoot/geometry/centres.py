"""The centre of a class in feature space: the minimum-loss point, the class mean, and how they compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import UnknownName, require
from ..types import Features, Labels, Predictions, check_labels
from .evaluation import slices
from .heads import at_least_single, check_features, cosines, head_predictions, pearson, weights_of

SCHEDULES = ("constant", "cosine")
KINDS = ("class mean", "weight vector", "minimum-loss point")


def class_centres(
    head: nn.Linear,
    learning_rate: float = 0.01,
    steps: int = 200,
    schedule: str = "constant",
    smoothing: float = 0.0,
    batch_size: int = 1024,
    progress: bool = False,
) -> Tensor:
    """The minimum-loss point of each class: gradient descent in feature space from 0 (representation-space 4.1, Tab. 1, 9).

    classes x dimensions. For hard labels (`smoothing` 0) the loss has no minimum: the point has a direction, and a norm that
    grows with `steps`. The gradient of the cross-entropy is (p - t) W, so the path stays in the span of the rows of W: with no
    more classes than twice the dimensions, it is followed by its coefficients, one product of classes x classes a step.
    """
    require(learning_rate > 0, "learning_rate", "positive", learning_rate)
    require(steps >= 1, "steps", "at least 1", steps)
    require(0 <= smoothing < 1, "smoothing", "at least 0 and below 1", smoothing)
    if schedule not in SCHEDULES:
        raise UnknownName("schedule", schedule, SCHEDULES)
    weight, bias = weights_of(head)
    classes, dimensions = weight.shape
    rates = [learning_rate * (1 if schedule == "constant" else (1 + math.cos(math.pi * k / steps)) / 2) for k in range(steps)]
    gram = weight @ weight.T if classes <= 2 * dimensions else None
    centres = torch.empty_like(weight)
    with torch.no_grad():
        for part in slices(classes, batch_size, progress, "centres"):
            rows = torch.arange(part.start, part.stop, device=weight.device)
            targets = torch.full((len(rows), classes), smoothing / classes, dtype=weight.dtype, device=weight.device)
            targets[torch.arange(len(rows), device=weight.device), rows] += 1 - smoothing
            centres[part] = descend(targets, weight, bias, gram, rates)
    return centres


def descend(targets: Tensor, weight: Tensor, bias: Tensor, gram: Tensor | None, rates: list[float]) -> Tensor:
    """f <- f - rate (softmax(W f + b) - t) W from f = 0, for each row of the targets."""
    moved = torch.zeros_like(targets)  # the coefficients of the rows of W
    logits, shares = bias.expand_as(targets).clone(), torch.empty_like(targets)
    for rate in rates:
        torch.softmax(logits, 1, out=shares)
        moved.add_(targets, alpha=rate).sub_(shares, alpha=rate)
        if gram is None:
            torch.addmm(bias, moved @ weight, weight.T, out=logits)
        else:
            torch.addmm(bias, moved, gram, out=logits)
    return moved @ weight


def class_means(
    features: Features,
    labels: Labels,
    predictions: Tensor | Predictions,
    num_classes: int | None = None,
    batch_size: int = 1024,
) -> Tensor:
    """The mean of the correctly classified features of each class (representation-space 4.1); NaN for a class without any.

    `predictions` are the predicted classes; classes x dimensions. The number of classes is that of the logits or else the
    largest class that occurs, unless given.
    """
    if isinstance(predictions, Predictions):
        num_classes = predictions.logits.shape[1] if num_classes is None else num_classes
        predictions = predictions.classes
    require(predictions.shape == labels.shape, "predictions", f"one class for each of {len(labels)} images", predictions.shape)
    if num_classes is None:
        num_classes = 1 + int(torch.maximum(labels, predictions).max()) if len(labels) else 0
    labels = check_labels(labels, num_classes, len(features))
    right = predictions == labels
    sums, counts = class_sums(features, torch.where(right, labels, -1), num_classes, batch_size)
    return (sums / counts[:, None]).to(at_least_single(features[:0]).dtype)


def class_sums(features: Features, classes: Tensor, num_classes: int, batch_size: int = 1024) -> tuple[Tensor, Tensor]:
    """Sum and number of the features of each class, in float64; class -1 counts nowhere."""
    sums = torch.zeros(num_classes + 1, features.shape[1], dtype=torch.float64, device=features.device)
    with torch.no_grad():
        for part in slices(len(features), batch_size, False, "means"):
            sums.index_add_(0, classes[part] % (num_classes + 1), features[part].double())
    counts = torch.bincount(classes % (num_classes + 1), minlength=num_classes + 1)
    return sums[:-1], counts[:-1].double()


@dataclass(frozen=True)
class CentreCorrelations:
    """Pearson r of confidence and cosine to each kind of centre, for the predicted class (representation-space Tab. 1)."""

    kinds: tuple[str, ...]
    values: Tensor


@dataclass(frozen=True)
class CentreStability:
    """One row for each configuration of the optimiser (representation-space Tab. 9).

    `values` is Pearson r of confidence and cosine; `mean_cosine` and `least_cosine` compare the centres with those of the
    default configuration, over classes.
    """

    schedules: tuple[str, ...]
    learning_rates: tuple[float, ...]
    steps: tuple[int, ...]
    values: Tensor
    mean_cosine: Tensor
    least_cosine: Tensor


def confidence_correlation(
    head: nn.Linear, features: Features, centres: Mapping[str, Tensor], batch_size: int = 1024, progress: bool = False
) -> CentreCorrelations:
    """Pearson r of confidence and cosine to these centres (each classes x dimensions), for the predicted class."""
    for name, points in centres.items():
        require(points.shape == head.weight.shape, f"centres['{name}']", f"shaped {tuple(head.weight.shape)}", points.shape)
    classes, confidence = head_predictions(head, features, batch_size, progress)
    correlations = [pearson(confidence, cosines(features, points, classes, batch_size)) for points in centres.values()]
    return CentreCorrelations(tuple(centres), torch.tensor(correlations, dtype=torch.float64))


def centre_correlations(
    head: nn.Linear, features: Features, labels: Labels, batch_size: int = 1024, progress: bool = False
) -> CentreCorrelations:
    """The row of Tab. 1 for this head: class means, weight vectors, minimum-loss points."""
    classes, _ = head_predictions(head, features, batch_size, progress)
    means = class_means(features, labels, classes, head.out_features)
    points = (means, head.weight.detach(), class_centres(head))
    return confidence_correlation(head, features, dict(zip(KINDS, points, strict=True)), batch_size, progress)


def centre_stability(
    head: nn.Linear,
    features: Features,
    learning_rates: Sequence[float] = (0.001, 0.01, 0.1),
    steps: Sequence[int] = (50, 100, 200),
    schedules: Sequence[str] = SCHEDULES,
    batch_size: int = 1024,
    progress: bool = False,
) -> CentreStability:
    """The minimum-loss points by every configuration of Tab. 9 beside those of the default."""
    classes, confidence = head_predictions(head, features, batch_size, progress)
    usual = class_centres(head)
    configurations = [(schedule, rate, count) for schedule in schedules for rate in learning_rates for count in steps]
    rows = []
    for part in slices(len(configurations), 1, progress, "centres"):
        schedule, rate, count = configurations[part.start]
        points = class_centres(head, rate, count, schedule)
        agreement = F.cosine_similarity(points, usual, dim=1)
        r = pearson(confidence, cosines(features, points, classes, batch_size))
        rows.append([r, float(agreement.mean()), float(agreement.min())])
    columns = torch.tensor(rows, dtype=torch.float64).T
    names, rates, counts = zip(*configurations, strict=True)
    return CentreStability(names, rates, counts, columns[0], columns[1], columns[2])


# Neural collapse (Papyan, Han and Donoho 2020): how near features and weights are to one simplex.


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
