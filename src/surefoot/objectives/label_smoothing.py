"""Cross-entropy against labels that keep a share for every class (Szegedy et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

from ..errors import require
from ..types import Images, Labels, Terms
from .base import Objective, weighted_sum
from .passes import one_pass
from .targets import as_targets, check_class_weights, weight_tensor


class LabelSmoothing(Objective):
    """L = mean of -sum_k q_k log p_k(x) with q = (1 - smoothing) onehot(y) + smoothing / classes."""

    def __init__(self, smoothing: float = 0.1, class_weights: Sequence[float] | None = None) -> None:
        super().__init__()
        require(0 <= smoothing < 1, "smoothing", "at least 0 and below 1", smoothing)
        self.smoothing = smoothing
        self.class_weights = check_class_weights(class_weights)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        logits = one_pass(model, images)
        weights = weight_tensor(self.class_weights, logits)
        loss = F.cross_entropy(
            logits, as_targets(labels, logits), weights, label_smoothing=self.smoothing, reduction="none"
        ).mean()
        return weighted_sum(logits, smoothed_cross_entropy=(1, loss))
