"""The optimiser and the course of its learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn

from ..errors import require


def build_sgd(module: nn.Module, learning_rate: float, momentum: float, nesterov: bool, weight_decay: float) -> torch.optim.SGD:
    """Stochastic gradient descent over everything that learns."""
    require(learning_rate > 0, "learning_rate", "positive", learning_rate)
    require(0 <= momentum < 1, "momentum", "at least 0 and below 1", momentum)
    require(weight_decay >= 0, "weight_decay", "at least 0", weight_decay)
    require(not nesterov or momentum > 0, "momentum", "positive for nesterov", momentum)
    parameters = [p for p in module.parameters() if p.requires_grad]
    return torch.optim.SGD(parameters, learning_rate, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay)


def warmup_cosine(steps: int, warmup_steps: int) -> Callable[[int], float]:
    """The share of the learning rate at a step: linear up to 1, then half a cosine down to 0."""

    def share(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        return 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / max(1, steps - warmup_steps)))

    return share
