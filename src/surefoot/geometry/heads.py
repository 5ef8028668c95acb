"""The last linear layer as a weight matrix and a bias in a precision that sums can bear."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Features


def weights_of(head: nn.Linear) -> tuple[Tensor, Tensor]:
    """Weight (classes x dimensions) and bias (zeros where there is none), detached, in float32 at least."""
    weight = at_least_single(head.weight.detach())
    bias = torch.zeros_like(weight[:, 0]) if head.bias is None else head.bias.detach().to(weight.dtype)
    return weight, bias


def at_least_single(values: Tensor) -> Tensor:
    """Half precision as float32; anything finer as it is."""
    return values if values.dtype == torch.float64 else values.float()


def check_features(features: Features, dimensions: int) -> None:
    """Refuse anything but images x dimensions of the head."""
    fits = features.ndim == 2 and features.shape[1] == dimensions
    require(fits, "features", f"images x {dimensions} dimensions", tuple(features.shape))
    require(features.is_floating_point(), "features", "floating point", features.dtype)
