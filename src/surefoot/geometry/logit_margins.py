"""The gap between the right class and the best of the others, and how large logits are beside it (macs Tab. 6)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..models.logit_margins import logit_margins
from ..types import Images, Labels, Logits
from .batching import slices
from .boundary import checked_labels, prepared
from .steadiness import steady

__all__ = ["LogitStatistics", "logit_margins", "logit_statistics", "logits_of", "margins"]


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
    with steady(model), torch.no_grad():
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
