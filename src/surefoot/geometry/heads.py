"""The last linear layer as a weight matrix and a bias, what it predicts, and norms and cosines of features."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import require
from ..types import Features, Logits
from .evaluation import slices


def weights_of(head: nn.Linear) -> tuple[Tensor, Tensor]:
    """Weight (classes x dimensions) and bias (zeros where there is none), detached, in float32 at least."""
    weight = at_least_single(head.weight.detach())
    bias = torch.zeros_like(weight[:, 0]) if head.bias is None else head.bias.detach().to(weight.dtype)
    return weight, bias


def at_least_single(values: Tensor) -> Tensor:
    """Half precision as float32; anything finer as it is."""
    return values if values.dtype == torch.float64 else values.float()


def prepared_features(head: nn.Linear, features: Features) -> Features:
    """At least one feature, on the device of the head and in the finer precision of the two."""
    check_not_empty(features)
    finer = torch.promote_types(at_least_single(features).dtype, weights_of(head)[0].dtype)
    return features.detach().to(head.weight.device, finer)


def logits_at(head: nn.Linear, features: Features) -> Logits:
    """The logits of features, in their precision."""
    weight, bias = weights_of(head)
    logits: Logits = F.linear(features, weight.to(features.dtype), bias.to(features.dtype))
    return logits


def check_features(features: Features, dimensions: int) -> None:
    """Refuse anything but images x dimensions of the head."""
    fits = features.ndim == 2 and features.shape[1] == dimensions
    require(fits, "features", f"images x {dimensions} dimensions", tuple(features.shape))
    require(features.is_floating_point(), "features", "floating point", features.dtype)


def check_not_empty(features: Features) -> None:
    """Refuse anything but images x dimensions with at least one image."""
    require(features.ndim == 2 and len(features) > 0, "features", "at least one, images x dimensions", tuple(features.shape))


def head_predictions(head: nn.Linear, features: Features, batch_size: int, progress: bool) -> tuple[Tensor, Tensor]:
    """The predicted class of each feature and its probability."""
    weight, bias = weights_of(head)
    check_features(features, weight.shape[1])
    classes = torch.empty(len(features), dtype=torch.long, device=features.device)
    confidence = torch.empty(len(features), dtype=weight.dtype, device=features.device)
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "predictions"):
            logits = torch.addmm(bias, features[part].to(weight.dtype), weight.T)
            best, classes[part] = logits.max(1)
            confidence[part] = (best - logits.logsumexp(1)).exp()
    return classes, confidence


# Norms and cosines of features, means, deviations and correlations, as the papers' tables report them.


def pearson(first: Tensor, second: Tensor) -> float:
    """Pearson's r of two lists of numbers, over the pairs that are both finite; NaN where one of them does not vary."""
    both = first.isfinite() & second.isfinite()
    x, y = first[both].double(), second[both].double()
    if len(x) < 2 or bool(x.min() == x.max()) or bool(y.min() == y.max()):
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / (x.norm() * y.norm()))


def mean_and_deviation(values: Tensor) -> tuple[float, float]:
    """Mean and deviation of the finite values, NaN without any."""
    exact = values[values.isfinite()].double()
    mean = exact.mean()
    return float(mean), float((exact - mean).square().mean().sqrt())


def mean_and_error(batches: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Mean over draws and its standard error (NaN for one draw) of each image; the batches are draws x images."""
    table = torch.cat(batches, 1)
    errors = table.std(0) / len(table) ** 0.5 if len(table) > 1 else torch.full_like(table[0], torch.nan)
    return table.mean(0), errors


def cosines(features: Features, centres: Tensor, classes: Tensor, batch_size: int = 1024) -> Tensor:
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


def feature_norms(features: Features, batch_size: int = 1024) -> Tensor:
    """The length of each feature, in float32 at least."""
    norms = torch.empty(len(features), dtype=at_least_single(features[:0]).dtype, device=features.device)
    for part in slices(len(features), batch_size, False, "norms"):
        norms[part] = torch.linalg.vector_norm(features[part].detach().to(norms.dtype), dim=1)
    return norms


def root_mean_square(features: Features, batch_size: int = 1024) -> Tensor:
    """sqrt(mean of the squared entries) of each feature, which compares over dimensions as the norm does not."""
    return feature_norms(features, batch_size).div_(features.shape[1] ** 0.5)
