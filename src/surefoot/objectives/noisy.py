"""Training with noise: on noisy images, on both, close in features, as a random self-ensemble."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, Logits, Terms
from ..views.simple import GaussianNoise
from ..views.table import build_view, describe_view
from .base import Objective, weighted_sum
from .cross_entropy import as_targets
from .passes import check_batch_norm, in_full, logits_of, one_pass, outputs_of, perturbed

# Training on noisy images only.


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


# Training on every image as it is and with noise.


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


# Stability training: features of an image and of its noisy version close to each other (Zheng et al. 2016).


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


# Random self-ensemble: noise in training, and the mean over noisy versions at test time (Liu et al. 2018).


class RandomSelfEnsemble(NoisyOnly):
    """L = CE(f(x + d), y) with d ~ N(0, noise_std^2 I) (magnma Eq. 4, noise at the input only), or the given view.

    `predictor(model)` averages the probabilities of `test_draws` noisy versions.
    """

    def __init__(self, noise_std: float = 0.1, test_draws: int = 10, view: Any = None) -> None:
        require(test_draws >= 1, "test_draws", "at least 1", test_draws)
        super().__init__(noise_std, view)
        self.test_draws = test_draws

    def predictor(self, model: nn.Module) -> nn.Module:
        view = GaussianNoise(self.noise_std) if self.view is None else build_view(self.view)
        return NoisyEnsemble(model, view, self.test_draws)


class NoisyEnsemble(nn.Module):
    """log of the mean over draws of p(view(x)): logits whose softmax is the ensemble's prediction.

    Every call draws anew from torch's global generator.
    """

    randomised = True

    def __init__(self, model: nn.Module, view: Any, draws: int) -> None:
        super().__init__()
        self.model, self.view, self.draws, self.training = model, view, draws, model.training

    def extra_repr(self) -> str:
        return f"draws={self.draws}, view={describe_view(self.view)}"

    def forward(self, images: Images) -> Logits:
        mean = torch.stack([self.model(self.view(images)).softmax(1) for _ in range(self.draws)]).mean(0)
        return mean.clamp_min(torch.finfo(mean.dtype).tiny).log()
