"""Model and objective as one module with a single forward, which is what a wrapper such as DDP needs to see."""

from __future__ import annotations

import torch
from torch import nn

from ..objectives.base import Objective
from ..types import Images, Labels, Terms


class Step(nn.Module):
    """The forward pass of a training step."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, images: Images, labels: Labels, generator: torch.Generator | None = None) -> Terms:
        terms: Terms = self.objective(self.model, images, labels, generator=generator)
        return terms
