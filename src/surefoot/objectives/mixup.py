"""Mixup: train on the mean of two images with the mean of their labels (Zhang et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import require
from ..seeds import beta
from ..types import Images, Labels, Terms
from .base import Objective, weighted_sum
from .passes import one_pass
from .targets import as_targets


class Mixup(Objective):
    """L = CE(f(w x + (1 - w) x'), w y + (1 - w) y') with one w ~ Beta(alpha, alpha) for the batch.

    The partner x' of an image is drawn from the same batch (of the same process). Validation sees unmixed images.
    """

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        require(alpha > 0, "alpha", "positive", alpha)
        self.alpha = alpha

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        partner = partners(images, generator)
        weight = float(beta(self.alpha, (1,), images, generator))
        logits = one_pass(model, torch.lerp(images[partner], images, weight))
        loss = mixed_cross_entropy(logits, labels, partner, weight)
        return weighted_sum(logits, mixed_cross_entropy=(1, loss))


def partners(images: Images, generator: torch.Generator | None) -> Tensor:
    """A random order of the batch."""
    device = images.device if generator is None else generator.device
    return torch.randperm(len(images), generator=generator, device=device).to(images.device)


def mixed_cross_entropy(logits: Tensor, labels: Labels, partner: Tensor, weight: float) -> Tensor:
    """w CE(f, y) + (1 - w) CE(f, y'), which is CE against the mixed labels."""
    targets = as_targets(labels, logits)
    return weight * F.cross_entropy(logits, targets) + (1 - weight) * F.cross_entropy(logits, targets[partner])
