"""Mixup and CutMix: two images in one, with labels to match."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import require
from ..seeds import beta
from ..types import Images, Labels, Terms
from .base import Objective, weighted_sum
from .cross_entropy import as_targets
from .passes import one_pass

# Mixup: train on the mean of two images with the mean of their labels (Zhang et al. 2018).


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


# CutMix: paste a rectangle of another image, and mix the labels by area (Yun et al. 2019).


class CutMix(Objective):
    """L = w CE(f(x~), y) + (1 - w) CE(f(x~), y'), with x~ the image x with a rectangle of x' and w the share of x that is left.

    The rectangle has sides sqrt(1 - w) of the image's with w ~ Beta(alpha, alpha), a centre anywhere, and is cut at the border.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        require(alpha > 0, "alpha", "positive", alpha)
        self.alpha = alpha

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        partner = partners(images, generator)
        height, width = images.shape[2:]
        rows, columns = rectangle(float(beta(self.alpha, (1,), images, generator)), height, width, generator)
        mixed = images.clone()
        mixed[:, :, rows, columns] = images[partner][:, :, rows, columns]
        weight = 1 - (rows.stop - rows.start) * (columns.stop - columns.start) / (height * width)
        logits = one_pass(model, mixed)
        return weighted_sum(logits, mixed_cross_entropy=(1, mixed_cross_entropy(logits, labels, partner, weight)))


def rectangle(weight: float, height: int, width: int, generator: torch.Generator | None) -> tuple[slice, slice]:
    """Rows and columns of a rectangle of about (1 - weight) of the area, around a centre anywhere in the image."""
    device = "cpu" if generator is None else generator.device
    centre = torch.rand(2, generator=generator, device=device).tolist()
    cut = math.sqrt(1 - weight)
    sides = []
    for share, side in zip(centre, (height, width), strict=True):
        middle, half = int(share * side), int(side * cut) // 2
        sides.append(slice(max(middle - half, 0), min(middle + half, side)))
    return sides[0], sides[1]
