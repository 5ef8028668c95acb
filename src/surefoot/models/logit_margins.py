"""The gap between the right class and the best of the others, from logits."""

from __future__ import annotations

import torch
from torch import Tensor

from ..types import Labels, Logits, check_labels


def logit_margins(logits: Logits, labels: Labels) -> Tensor:
    """gamma(x) = f_y(x) - max over j != y of f_j(x)  (macs Eq. 3); of equal rivals the first, which alone gets a gradient."""
    labels = check_labels(labels, logits.shape[1], len(logits)).unsqueeze(1)
    others = logits.scatter(1, labels, -torch.inf).max(1).values
    return logits.gather(1, labels).squeeze(1) - others
