"""Training on every image as it is and with noise."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, Terms
from ..views.noise import GaussianNoise
from ..views.table import build_view
from .base import Objective, weighted_sum
from .passes import check_batch_norm, logits_of, perturbed
from .targets import as_targets


class CleanAndNoisy(Objective):
    """L = (CE(f(x), y) + CE(f(x + d), y)) / 2 with d ~ N(0, noise_std^2 I) (discriminative-noise section 7.1), or a view."""

    def __init__(self, noise_std: float = 0.06, view: Any = None, batch_norm: str = "apart") -> None:
        super().__init__()
        require(noise_std >= 0, "noise_std", "at least 0", noise_std)
        self.noise_std, self.view, self.batch_norm = noise_std, view, check_batch_norm(batch_norm)
        self.perturb = GaussianNoise(noise_std) if view is None else build_view(view)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        clean, noisy = logits_of(model, [images, perturbed(self.perturb, images, generator)], self.batch_norm)
        targets = as_targets(labels, clean)
        return weighted_sum(
            clean,
            cross_entropy=(0.5, F.cross_entropy(clean, targets)),
            noisy_cross_entropy=(0.5, F.cross_entropy(noisy, targets)),
        )
