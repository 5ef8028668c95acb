"""The last linear layer as a weight matrix and a bias in a precision that sums can bear, and what it predicts."""

from __future__ import annotations

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
