"""Training on noisy images only."""

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
from .passes import one_pass, perturbed
from .targets import as_targets


class NoisyOnly(Objective):
    """L = CE(f(x + d), y) with d ~ N(0, noise_std^2 I) (discriminative-noise section 7.1), or the given view in its place."""

    def __init__(self, noise_std: float = 0.06, view: Any = None) -> None:
        super().__init__()
        require(noise_std >= 0, "noise_std", "at least 0", noise_std)
        self.noise_std, self.view = noise_std, view
        self.perturb = GaussianNoise(noise_std) if view is None else build_view(view)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        logits = one_pass(model, perturbed(self.perturb, images, generator))
        return weighted_sum(logits, noisy_cross_entropy=(1, F.cross_entropy(logits, as_targets(labels, logits))))
