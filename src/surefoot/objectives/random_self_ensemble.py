"""Random self-ensemble: noise in training, and the mean over noisy versions at test time (Liu et al. 2018)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..errors import require
from ..types import Images, Logits
from ..views.noise import GaussianNoise
from ..views.table import build_view, describe_view
from .noisy import NoisyOnly


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
