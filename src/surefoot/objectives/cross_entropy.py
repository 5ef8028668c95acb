"""Plain cross-entropy: the baseline."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..types import Images, Labels, Terms, check_labels
from .base import Objective


class CrossEntropy(Objective):
    """L = mean over images of -log p_y(x)  (macs Eq. 2)."""

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        logits = model(images)
        loss = F.cross_entropy(logits, check_labels(labels, logits.shape[1], len(images)))
        return Terms(loss, {"cross_entropy": loss.detach()}, logits)
