"""What a training step costs, relative to cross-entropy on the same machine at the same moment (macs Table 9)."""

from __future__ import annotations

import time
from copy import deepcopy
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ..errors import SurefootError, require
from ..objectives.base import Objective
from ..objectives.cross_entropy import CrossEntropy
from ..types import Batch
from .base import Whole

if TYPE_CHECKING:
    from .context import Context


class StepCost(Whole):
    """Median over pairs of steps of the time of a forward and backward pass over that of cross-entropy.

    Steps of both alternate, so that a machine that slows down slows both; timings are never exactly the same twice.
    """

    part = "geometry"

    def __init__(self, steps: int = 10, batch_size: int | None = None) -> None:
        require(steps >= 1, "steps", "at least 1", steps)
        self.steps, self.batch_size = steps, batch_size

    def run(self, context: Context) -> Any:
        if context.recipe is None or context.objective is None:
            raise SurefootError("The cost of a training step needs the recipe and the objective.")
        size = context.recipe.training["batch_size"] if self.batch_size is None else self.batch_size
        batch = next(iter(context.data.train.batches(min(size, len(context.data.train)), device=context.device)))
        model = deepcopy(context.linear).to(context.device).train()
        own, baseline = deepcopy(context.objective).to(context.device), CrossEntropy()
        for objective in (own, baseline):  # the first steps also allocate
            seconds(model, objective, batch)
        pairs = [(seconds(model, own, batch), seconds(model, baseline, batch)) for _ in range(self.steps)]
        relative, milliseconds = median(a / b for a, b in pairs), 1000 * median(a for a, _ in pairs)
        return {"values": {"relative": relative, "milliseconds": milliseconds}}


def seconds(model: nn.Module, objective: Objective, batch: Batch) -> float:
    """The time of one forward and backward pass."""
    began = time.perf_counter()
    objective(model, batch.images, batch.labels).total.backward()
    if batch.images.device.type != "cpu":
        torch.accelerator.synchronize()
    took = time.perf_counter() - began
    model.zero_grad(set_to_none=True)
    return took
