"""Which kind of class centre tells most about confidence, and whether the minimum-loss point depends on how it is sought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import require
from ..types import Features, Labels
from .batching import slices
from .centres import SCHEDULES, class_centres, class_means
from .correlation import pearson
from .heads import at_least_single, check_features, weights_of

KINDS = ("class mean", "weight vector", "minimum-loss point")


@dataclass(frozen=True)
class CentreCorrelations:
    """Pearson r of confidence and cosine to each kind of centre, for the predicted class (representation-space Tab. 1)."""

    kinds: tuple[str, ...]
    values: Tensor


@dataclass(frozen=True)
class CentreStability:
    """One row for each optimiser setting (representation-space Tab. 9).

    `values` is Pearson r of confidence and cosine; `mean_cosine` and `least_cosine` compare the centres with those of the
    default setting, over classes.
    """

    schedules: tuple[str, ...]
    learning_rates: tuple[float, ...]
    steps: tuple[int, ...]
    values: Tensor
    mean_cosine: Tensor
    least_cosine: Tensor


def answers(head: nn.Linear, features: Features, batch_size: int, progress: bool) -> tuple[Tensor, Tensor]:
    """The predicted class of each feature and its probability."""
    weight, bias = weights_of(head)
    check_features(features, weight.shape[1])
    classes = torch.empty(len(features), dtype=torch.long, device=features.device)
    confidence = torch.empty(len(features), dtype=weight.dtype, device=features.device)
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "answers"):
            logits = torch.addmm(bias, features[part].to(weight.dtype), weight.T)
            best, classes[part] = logits.max(1)
            confidence[part] = (best - logits.logsumexp(1)).exp()
    return classes, confidence


def cosines(features: Features, centres: Tensor, classes: Tensor, batch_size: int = 4096) -> Tensor:
    """The cosine of each feature and the centre of its class; 0 where one of them is 0, NaN where there is no centre."""
    norms = feature_norms(features, batch_size)
    units = F.normalize(at_least_single(centres), dim=1)
    along = torch.empty_like(norms)
    with torch.no_grad():
        for part in slices(len(features), batch_size, False, "cosines"):
            along[part] = torch.linalg.vecdot(features[part].to(along.dtype), units[classes[part]].to(along.dtype))
    return as_cosine(along, norms)


def as_cosine(along: Tensor, norms: Tensor) -> Tensor:
    """Components along a unit vector as cosines."""
    return (along / norms.clamp_min(torch.finfo(norms.dtype).tiny)).clamp_(-1, 1)


def feature_norms(features: Features, batch_size: int = 4096) -> Tensor:
    """The length of each feature, in float32 at least."""
    found = torch.empty(len(features), dtype=at_least_single(features[:0]).dtype, device=features.device)
    for part in slices(len(features), batch_size, False, "norms"):
        found[part] = torch.linalg.vector_norm(features[part].detach().to(found.dtype), dim=1)
    return found


def confidence_correlation(
    head: nn.Linear, features: Features, centres: Mapping[str, Tensor], batch_size: int = 4096, progress: bool = False
) -> CentreCorrelations:
    """Pearson r of confidence and cosine to these centres (each classes x dimensions), for the predicted class."""
    for name, points in centres.items():
        require(points.shape == head.weight.shape, f"centres['{name}']", f"shaped {tuple(head.weight.shape)}", points.shape)
    classes, confidence = answers(head, features, batch_size, progress)
    found = [pearson(confidence, cosines(features, points, classes, batch_size)) for points in centres.values()]
    return CentreCorrelations(tuple(centres), torch.tensor(found, dtype=torch.float64))


def centre_correlations(
    head: nn.Linear, features: Features, labels: Labels, batch_size: int = 4096, progress: bool = False
) -> CentreCorrelations:
    """The row of Tab. 1 for this head: class means, weight vectors, minimum-loss points."""
    classes, _ = answers(head, features, batch_size, progress)
    means = class_means(features, labels, classes, head.out_features)
    points = (means, head.weight.detach(), class_centres(head))
    return confidence_correlation(head, features, dict(zip(KINDS, points, strict=True)), batch_size, progress)


def centre_stability(
    head: nn.Linear,
    features: Features,
    learning_rates: Sequence[float] = (0.001, 0.01, 0.1),
    steps: Sequence[int] = (50, 100, 200),
    schedules: Sequence[str] = SCHEDULES,
    batch_size: int = 4096,
    progress: bool = False,
) -> CentreStability:
    """The minimum-loss points by every setting of Tab. 9 beside those of the default."""
    classes, confidence = answers(head, features, batch_size, progress)
    usual = class_centres(head)
    settings = [(schedule, rate, count) for schedule in schedules for rate in learning_rates for count in steps]
    rows = []
    for part in slices(len(settings), 1, progress, "settings"):
        schedule, rate, count = settings[part.start]
        points = class_centres(head, rate, count, schedule)
        agreement = F.cosine_similarity(points, usual, dim=1)
        r = pearson(confidence, cosines(features, points, classes, batch_size))
        rows.append([r, float(agreement.mean()), float(agreement.min())])
    columns = torch.tensor(rows, dtype=torch.float64).T
    names, rates, counts = zip(*settings, strict=True)
    return CentreStability(names, rates, counts, columns[0], columns[1], columns[2])
