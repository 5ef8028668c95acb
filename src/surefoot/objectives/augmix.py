"""AugMix: agree on an image and two augmented versions of it (Hendrycks et al. 2020)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, Terms
from ..views.augmix import AugMixChains
from ..views.table import build_view
from .base import Objective, jensen_shannon, weighted_sum
from .cross_entropy import as_targets
from .passes import check_batch_norm, logits_of, perturbed


class AugMix(Objective):
    """L = CE(x) + jsd_weight mean JS(p(x); p(x_1); p(x_2))  (magnma Eq. 5), with x_1, x_2 two draws of the view.

    The view is AugMix's mixed chains unless another is given. Batch norm sees all three together, as the authors' code does;
    `batch_norm="apart"` gives each its own statistics.
    """

    def __init__(
        self,
        jsd_weight: float = 12.0,
        severity: float = 3,
        width: int = 3,
        alpha: float = 1.0,
        view: Any = None,
        batch_norm: str = "together",
    ) -> None:
        super().__init__()
        require(jsd_weight >= 0, "jsd_weight", "at least 0", jsd_weight)
        self.jsd_weight, self.severity, self.width, self.alpha = jsd_weight, severity, width, alpha
        self.view, self.batch_norm = view, check_batch_norm(batch_norm)
        self.perturb = AugMixChains(severity, width, alpha=alpha) if view is None else build_view(view)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        views = [perturbed(self.perturb, images, generator) for _ in range(2)]
        clean, *others = logits_of(model, [images, *views], self.batch_norm)
        return weighted_sum(
            clean,
            cross_entropy=(1, F.cross_entropy(clean, as_targets(labels, clean))),
            jensen_shannon=(self.jsd_weight, jensen_shannon([clean, *others]).mean()),
        )
