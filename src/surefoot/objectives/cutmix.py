"""CutMix: paste a rectangle of another image, and mix the labels by area (Yun et al. 2019)."""

from __future__ import annotations

import math

import torch
from torch import nn

from ..errors import require
from ..seeds import beta
from ..types import Images, Labels, Terms
from .base import Objective, weighted_sum
from .mixup import mixed_cross_entropy, partners
from .passes import one_pass


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
    for place, side in zip(centre, (height, width), strict=True):
        middle, half = int(place * side), int(side * cut) // 2
        sides.append(slice(max(middle - half, 0), min(middle + half, side)))
    return sides[0], sides[1]
