"""The focal loss: less weight on what is already right (Lin et al. 2017)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, Terms, check_labels
from .base import Objective


class Focal(Objective):
    """L = mean of -(1 - p_y(x))^gamma log p_y(x)."""

    def __init__(self, gamma: float = 2.0) -> None:
        super().__init__()
        require(gamma >= 0, "gamma", "at least 0", gamma)
        self.gamma = gamma

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        logits = model(images)
        labels = check_labels(labels, logits.shape[1], len(images))
        log_p = -F.cross_entropy(logits, labels, reduction="none")
        doubt = (-torch.expm1(log_p)).clamp_min(torch.finfo(log_p.dtype).tiny)  # 1 - p_y; its power has a gradient at 0
        loss = -(doubt**self.gamma * log_p).mean()
        return Terms(loss, {"focal": loss.detach()}, logits)
