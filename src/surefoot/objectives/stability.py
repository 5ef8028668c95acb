"""Stability training: features of an image and of its noisy version close to each other (Zheng et al. 2016)."""

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
from .passes import check_batch_norm, in_full, outputs_of, perturbed
from .targets import as_targets


class Stability(Objective):
    """L = CE(x) + weight mean ||q(x) - q(x')||, with q the features and x' the noisy image (discriminative-noise section 7.1).

    The weight is ours: the paper gives none. `view` is used in place of the noise.
    """

    def __init__(self, noise_std: float = 0.06, weight: float = 1.0, view: Any = None, batch_norm: str = "apart") -> None:
        super().__init__()
        require(noise_std >= 0, "noise_std", "at least 0", noise_std)
        require(weight >= 0, "weight", "at least 0", weight)
        self.noise_std, self.weight, self.view, self.batch_norm = noise_std, weight, view, check_batch_norm(batch_norm)
        self.perturb = GaussianNoise(noise_std) if view is None else build_view(view)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        clean, noisy = outputs_of(model, [images, perturbed(self.perturb, images, generator)], self.batch_norm)
        return weighted_sum(
            clean.logits,
            cross_entropy=(1, F.cross_entropy(clean.logits, as_targets(labels, clean.logits))),
            stability=(self.weight, torch.linalg.vector_norm(in_full(clean.features) - in_full(noisy.features), dim=1).mean()),
        )
