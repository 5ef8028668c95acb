"""The gap between the right class and the best of the others."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..models.observing import evaluating
from ..types import Images, Labels, Logits, check_labels


def margins(model: nn.Module, images: Images, labels: Labels) -> Tensor:
    """gamma(x) = f_y(x) - max over j != y of f_j(x)  (macs Eq. 3); positive where the model is right."""
    with evaluating(model), torch.no_grad():
        return logit_margins(model(images), labels)


def logit_margins(logits: Logits, labels: Labels) -> Tensor:
    """The same from logits."""
    labels = check_labels(labels, logits.shape[1], len(logits)).unsqueeze(1)
    others = logits.scatter(1, labels, -torch.inf).max(1).values
    return logits.gather(1, labels).squeeze(1) - others
