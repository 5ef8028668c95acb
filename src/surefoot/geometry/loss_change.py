"""How much the loss can change within a small distance, to second order (magnma Theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Images, Labels
from .batching import slices
from .boundary import checked_labels, norms, prepared
from .hessian_spectrum import hessian_eigenvalues
from .loss_gradients import loss_gradient
from .steadiness import steady

NOTE = (
    "Holds up to o(distance^2), for one-hot labels; Eq. 11 takes the Hessian as positive semidefinite, which it is for"
    " piecewise linear nets: elsewhere read `two_sided`. Lanczos approaches the eigenvalue from below."
)


@dataclass(frozen=True)
class LossChange:
    """For each image: `values` is magnma Eq. 11 without its rest; `two_sided` takes the largest |eigenvalue| instead."""

    values: Tensor
    two_sided: Tensor
    gradient_norms: Tensor
    largest_eigenvalues: Tensor
    distance: float
    note: str = NOTE


def loss_change_bound(
    model: nn.Module,
    images: Images,
    labels: Labels,
    distance: float = 0.1,
    steps: int = 20,
    generator: torch.Generator | None = None,
    *,
    batch_size: int = 32,
    progress: bool = False,
) -> LossChange:
    """||d|| ||grad l|| + lambda_max ||d||^2 / 2 for ||d|| = `distance` (magnma Eq. 11); `steps` are Lanczos'."""
    require(distance > 0, "distance", "positive", distance)
    found = hessian_eigenvalues(model, images, labels, steps, generator, batch_size=batch_size, progress=progress)
    images, labels = prepared(model, images), checked_labels(labels, images)
    with steady(model):
        parts = slices(len(images), batch_size, progress, "loss gradients")
        slopes = torch.cat([norms(loss_gradient(model, images[part], labels[part].to(images.device))) for part in parts])
    absolute = torch.maximum(found.values.abs(), found.smallest.abs())
    linear, square = distance * slopes, distance**2 / 2
    bounds = linear + square * found.values, linear + square * absolute
    return LossChange(bounds[0], bounds[1], slopes, found.values, distance)
