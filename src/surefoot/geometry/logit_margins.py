"""The gap between the right class and the best of the others, of a model on images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..models.logit_margins import logit_margins
from ..models.observing import evaluating
from ..types import Images, Labels

__all__ = ["logit_margins", "margins"]


def margins(model: nn.Module, images: Images, labels: Labels) -> Tensor:
    """gamma(x) = f_y(x) - max over j != y of f_j(x)  (macs Eq. 3); positive where the model is right."""
    with evaluating(model), torch.no_grad():
        return logit_margins(model(images), labels)
