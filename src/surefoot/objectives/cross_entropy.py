"""Plain cross-entropy: the baseline."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional as F

from ..types import Images, Labels, Terms
from .base import Objective, weighted_sum
from .passes import one_pass
from .targets import as_targets, check_class_weights, weight_tensor


class CrossEntropy(Objective):
    """L = mean over images of -log p_y(x)  (macs Eq. 2); each loss is multiplied by the weight of its class, if any."""

    def __init__(self, class_weights: Sequence[float] | None = None) -> None:
        super().__init__()
        self.class_weights = check_class_weights(class_weights)

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        logits = one_pass(model, images)
        loss = F.cross_entropy(
            logits, as_targets(labels, logits), weight_tensor(self.class_weights, logits), reduction="none"
        ).mean()
        return weighted_sum(logits, cross_entropy=(1, loss))
