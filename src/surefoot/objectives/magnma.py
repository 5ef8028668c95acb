"""MAGNMA: misclassification-aware Gaussian noise smoothing, with mixed augmentations, and without the awareness."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, Terms, check_labels
from ..views.combinations import MixedTone
from ..views.simple import GaussianNoise
from ..views.table import build_view
from .base import Objective, kl, log_probabilities, weighted_sum
from .noisy import NoisyOnly
from .passes import check_batch_norm, logits_of, perturbed

# MAGNMA: misclassification-aware Gaussian noise smoothing with mixed augmentations.


class MAGNMA(Objective):
    """L = CE + noise_weight p_y(x) R(x) + mix_weight p_y(x) Z(x), averaged over images  (magnma Eq. 6, Algorithm 1).

    R is the mean over `samples` of D(p(x) || p(x + d)), d ~ N(0, s^2 I) with s ~ U(0, max_std) for each image; Z the mean of
    D(p(x) || p(w x + (1 - w) T_a(x))). The true-class probability p_y carries gradient unless `detach_weight`, and is left out
    unless `aware`. A weight of 0 leaves its term and its passes out: `noise_weight=0.2, mix_weight=0` and `noise_weight=0,
    mix_weight=5` are the variants of Table 3. `samples=1` is the cheap variant. `view` is used in place of the noise. Batch
    norm sees each draw apart, as the algorithm is written, or all together.
    """

    def __init__(
        self,
        noise_weight: float = 0.2,
        mix_weight: float = 0.3,
        max_std: float = 0.2,
        beta: float = 1.0,
        samples: int = 5,
        detach_weight: bool = False,
        view: Any = None,
        batch_norm: str = "apart",
        aware: bool = True,
    ) -> None:
        super().__init__()
        require(noise_weight >= 0, "noise_weight", "at least 0", noise_weight)
        require(mix_weight >= 0, "mix_weight", "at least 0", mix_weight)
        require(max_std >= 0, "max_std", "at least 0", max_std)
        require(samples >= 1, "samples", "at least 1", samples)
        self.noise_weight, self.mix_weight, self.max_std, self.beta = noise_weight, mix_weight, max_std, beta
        self.samples, self.detach_weight, self.view, self.aware = samples, detach_weight, view, aware
        self.batch_norm = check_batch_norm(batch_norm)
        self.perturb = GaussianNoise((0.0, max_std)) if view is None else build_view(view)
        self.mix = MixedTone(beta)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        used = [
            (name, weight, view)
            for name, weight, view in (("noise", self.noise_weight, self.perturb), ("mix", self.mix_weight, self.mix))
            if weight > 0
        ]
        views = [perturbed(view, images, generator) for _, _, view in used for _ in range(self.samples)]
        clean, *others = logits_of(model, [images, *views], self.batch_norm)
        labels = check_labels(labels, clean.shape[1], len(images))
        own = log_probabilities(clean).gather(1, labels[:, None]).squeeze(1).exp()
        trust = (own.detach() if self.detach_weight else own) if self.aware else torch.ones_like(own)
        terms = {"cross_entropy": (1.0, F.cross_entropy(clean, labels))}
        for index, (name, weight, _) in enumerate(used):
            drawn = others[index * self.samples : (index + 1) * self.samples]
            divergence = torch.stack([kl(clean, other) for other in drawn]).mean(0)
            terms[name] = (weight, (trust * divergence).mean())
        return weighted_sum(clean, **terms)


class DiGN(MAGNMA):
    """L = CE + noise_weight R(x): consistency under diverse Gaussian noise, without MAGNMA's p_y (macs section 5.8)."""

    def __init__(
        self,
        noise_weight: float = 0.2,
        max_std: float = 0.2,
        samples: int = 5,
        view: Any = None,
        batch_norm: str = "apart",
    ) -> None:
        super().__init__(noise_weight, 0, max_std, samples=samples, view=view, batch_norm=batch_norm, aware=False)


# Training on images with noise of many levels.


class DiverseNoise(NoisyOnly):
    """L = CE(f(x + d), y) with d ~ N(0, s^2 I) and s ~ U(0, max_std) for each image (magnma Eq. 12), or the given view."""

    def __init__(self, max_std: float = 0.2, view: Any = None) -> None:
        require(max_std >= 0, "max_std", "at least 0", max_std)
        super().__init__(view={"name": "noise", "std": [0.0, max_std]} if view is None else view)
        self.max_std, self.view = max_std, view
