"""MaCS and AugMix in one loss (macs Tables 5 and 7)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, Terms, check_labels
from ..views.augmix import AugMixChains
from ..views.table import build_view
from .base import Objective, weighted_sum
from .divergences import jensen_shannon, kl
from .macs import blur_then_noise, margin_loss
from .passes import check_batch_norm, logits_of, perturbed


class MaCSAugMix(Objective):
    """The sum of both: CE + margin_weight margin + consistency_weight D(p(x) || p(T(x))) + jsd_weight JS(p(x); p(x_1); p(x_2)).

    T is MaCS's view, x_1 and x_2 are AugMix's. MaCS with AugMix as its only view is another method: `MaCS(view="augmix")`.
    """

    def __init__(
        self,
        margin: float = 1.0,
        margin_weight: float = 0.1,
        consistency_weight: float = 0.5,
        jsd_weight: float = 12.0,
        severity: float = 3,
        width: int = 3,
        alpha: float = 1.0,
        view: Any = None,
        batch_norm: str = "apart",
    ) -> None:
        super().__init__()
        weights = {"margin_weight": margin_weight, "consistency_weight": consistency_weight, "jsd_weight": jsd_weight}
        for name, weight in {"margin": margin, **weights}.items():
            require(weight >= 0, name, "at least 0", weight)
        self.margin, self.margin_weight, self.consistency_weight, self.jsd_weight = margin, *weights.values()
        self.severity, self.width, self.alpha, self.view = severity, width, alpha, view
        self.batch_norm = check_batch_norm(batch_norm)
        self.perturb = blur_then_noise() if view is None else build_view(view)
        self.mix = AugMixChains(severity, width, alpha=alpha)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        views = [perturbed(view, images, generator) for view in (self.perturb, self.mix, self.mix)]
        clean, other, *mixed = logits_of(model, [images, *views], self.batch_norm)
        labels = check_labels(labels, clean.shape[1], len(images))
        return weighted_sum(
            clean,
            cross_entropy=(1, F.cross_entropy(clean, labels)),
            margin=(self.margin_weight, margin_loss(clean, labels, self.margin)),
            consistency=(self.consistency_weight, kl(clean, other).mean()),
            jensen_shannon=(self.jsd_weight, jensen_shannon([clean, *mixed]).mean()),
        )
