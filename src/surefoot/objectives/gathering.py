"""Sums over all processes, with gradient: what a loss needs that is not a mean over images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed


class _Sum(torch.autograd.Function):
    """The sum over processes; its gradient is the sum of the gradients that the processes give it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.detach().clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        distributed.all_reduce(total)
        return total


def summed(value: Tensor) -> Tensor:
    """The sum of `value` over all processes; itself where there is one.

    When every process has the same loss as a function of such sums, its gradient is the number of processes times too large in
    each, and DDP's mean over processes makes it right.
    """
    if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
        return value
    result: Tensor = _Sum.apply(value)
    return result
