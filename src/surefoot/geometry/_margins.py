"""Margins: of logits (macs Eq. 3), of features from the hyperplanes of the head, of whole classes beside their dispersion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..models.classifier import logit_margins
from ..types import Features, Images, Labels, Logits, check_labels
from .centres import class_sums
from .evaluation import checked_labels, deterministic, prepared, slices
from .heads import logits_at, prepared_features, weights_of

BLOCK = 1024  # features against features at a time


@dataclass(frozen=True)
class LogitStatistics:
    """macs Tab. 6 for each image, and the means over images: `values` are the margins."""

    values: Tensor
    norms: Tensor
    largest: Tensor
    mean_margin: float
    mean_norm: float
    mean_largest: float


def logits_of(model: nn.Module, images: Images, batch_size: int = 256, progress: bool = False) -> Logits:
    """The logits of all images, in evaluation mode and the model's own dtype, without gradient."""
    images = prepared(model, images)
    with deterministic(model), torch.no_grad():
        return torch.cat([model(images[part]) for part in slices(len(images), batch_size, progress, "logits")])


def margins(model: nn.Module, images: Images, labels: Labels, *, batch_size: int = 256, progress: bool = False) -> Tensor:
    """gamma(x) = f_y(x) - max over j != y of f_j(x)  (macs Eq. 3); positive where the model is right."""
    labels = checked_labels(labels, images)
    logits = logits_of(model, images, batch_size, progress)
    return logit_margins(logits, labels.to(logits.device))


def logit_statistics(
    model: nn.Module, images: Images, labels: Labels, *, batch_size: int = 256, progress: bool = False
) -> LogitStatistics:
    """Margin, Euclidean norm of the logits and largest logit, of each image and on average (macs Tab. 6)."""
    labels = checked_labels(labels, images)
    logits = logits_of(model, images, batch_size, progress)
    gaps = logit_margins(logits, labels.to(logits.device))
    norms, largest = torch.linalg.vector_norm(logits, dim=1), logits.amax(1)
    means = [float(values.double().mean()) for values in (gaps, norms, largest)]
    return LogitStatistics(gaps, norms, largest, *means)


def weight_distances(head: nn.Linear) -> Tensor:
    """||W_i - W_j|| for all pairs of classes, by differences: the matmul form is too inexact for near rows."""
    weight = weights_of(head)[0]
    return torch.cdist(weight, weight, compute_mode="donot_use_mm_for_euclid_dist")


def signed_distances(head: nn.Linear, features: Features, classes: Labels, between: Tensor) -> Tensor:
    """(z_c - z_i) / ||W_c - W_i|| to the hyperplane of each rival i; infinite for i = c and rivals with the same weights."""
    logits = logits_at(head, features)
    gaps = logits.gather(1, classes.unsqueeze(1)) - logits
    lengths = between[classes]
    distances = torch.where(lengths > 0, gaps / lengths, torch.inf)
    return distances.scatter(1, classes.unsqueeze(1), torch.inf)


def hyperplane_distances(
    head: nn.Linear,
    features: Features,
    labels: Labels | None = None,
    *,
    batch_size: int = 4096,
    progress: bool = False,
) -> Tensor:
    """The signed distance of each feature from the nearest hyperplane of its class: positive on the side of the class.

    The class is the label, or the predicted one where no labels are given; then the distance is never negative and is the
    least that a feature must move to change the prediction.
    """
    features = prepared_features(head, features)
    if labels is not None:
        labels = check_labels(labels, head.out_features, len(features)).to(features.device)
    between, distances = weight_distances(head), []
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "hyperplanes"):
            classes = logits_at(head, features[part]).argmax(1) if labels is None else labels[part]
            distances.append(signed_distances(head, features[part], classes, between).amin(1))
    return torch.cat(distances)


def boundary_ratio(head: nn.Linear, features: Features, labels: Labels) -> float:
    """Mean signed distance to the nearest hyperplane over the mean distance to the class's mean.

    The scaling of discriminative-noise Prop. 5.3 changes both, and not their ratio. Infinite where classes are points.
    """
    features = prepared_features(head, features)
    labels = check_labels(labels, head.out_features, len(features)).to(features.device)
    sums, counts = class_sums(features, labels, head.out_features)
    means, spread = sums / counts.clamp_min(1).unsqueeze(1), 0.0
    for part in slices(len(features), 4096, False, "spread"):
        spread += float(torch.linalg.vector_norm(features[part].double() - means[labels[part]], dim=1).sum())
    distance = float(hyperplane_distances(head, features, labels).double().sum())
    return distance / spread if spread > 0 else math.copysign(math.inf, distance)


@dataclass(frozen=True)
class ClassShapes:
    """For each class; NaN where it has no image.

    `margins` are unsigned as Def. 5.1 has them, so a sample far on the wrong side counts as far; `signed_margins` are
    negative as soon as one sample of the class is on the wrong side.
    """

    dispersions: Tensor
    margins: Tensor
    signed_margins: Tensor
    counts: Tensor


def class_shapes(
    head: nn.Linear, features: Features, labels: Labels, *, batch_size: int = 4096, progress: bool = False
) -> ClassShapes:
    """Dispersion (discriminative Def. 3.1) and margin (Def. 5.1) of every class, exact, in memory of order n."""
    features = prepared_features(head, features)
    labels = check_labels(labels, head.out_features, len(features)).to(features.device)
    between, unsigned, signed = weight_distances(head), [], []
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "class margins"):
            distances = signed_distances(head, features[part], labels[part], between)
            unsigned.append(distances.abs().amin(1))
            signed.append(distances.amin(1))
    empty = features.new_full((head.out_features,), torch.nan)
    near = empty.scatter_reduce(0, labels, torch.cat(unsigned), "amin", include_self=False)
    near_signed = empty.scatter_reduce(0, labels, torch.cat(signed), "amin", include_self=False)
    widths = empty.clone()
    present = labels.unique().tolist()
    for part in slices(len(present), 1, progress, "class dispersion"):
        label = present[part.start]
        widths[label] = diameter(features[labels == label])
    return ClassShapes(widths, near, near_signed, labels.bincount(minlength=head.out_features))


def diameter(points: Features) -> float:
    """The largest distance between two points, exact to rounding.

    A matmul screens the pairs block by block; those that its rounding error leaves in question are measured by differences.
    """
    points = points - points.mean(0)
    squares = points.square().sum(1)
    slack = 4 * (points.shape[1] + 8) * torch.finfo(points.dtype).eps
    far = points[squares.argmax()]
    best = float(torch.linalg.vector_norm(points - far, dim=1).max())  # a good guess leaves few pairs in question
    for start in range(0, len(points), BLOCK):
        left, left_squares = points[start : start + BLOCK], squares[start : start + BLOCK].unsqueeze(1)
        for other in range(start, len(points), BLOCK):
            right, sums = points[other : other + BLOCK], left_squares + squares[other : other + BLOCK]
            screened = torch.addmm(sums, left, right.T, alpha=-2)
            candidates = (screened + slack * sums > best * best).nonzero()
            if len(candidates) > BLOCK:
                whole = torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
                best = max(best, float(whole.max()))
            elif len(candidates):
                apart = torch.linalg.vector_norm(left[candidates[:, 0]] - right[candidates[:, 1]], dim=1)
                best = max(best, float(apart.max()))
    return best
