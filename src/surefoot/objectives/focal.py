"""The focal loss: less weight on what is already right (Lin et al. 2017)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, Terms
from .base import Objective, weighted_sum
from .divergences import log_probabilities
from .passes import one_pass
from .targets import as_targets


class Focal(Objective):
    """L = mean of -(1 - p_y(x))^gamma log p_y(x); for soft labels q, the sum over classes weighted by q_k."""

    def __init__(self, gamma: float = 2.0) -> None:
        super().__init__()
        require(gamma >= 0, "gamma", "at least 0", gamma)
        self.gamma = gamma

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        logits = one_pass(model, images)
        targets = as_targets(labels, logits)
        log_p = log_probabilities(logits)
        shares = targets if targets.ndim == 2 else F.one_hot(targets, logits.shape[1]).to(log_p.dtype)
        doubt = (-torch.expm1(log_p)).clamp_min(torch.finfo(log_p.dtype).tiny)  # 1 - p; its power has a gradient at 0
        loss = -(shares * doubt**self.gamma * log_p).sum(1).mean()
        return weighted_sum(logits, focal=(1, loss))
