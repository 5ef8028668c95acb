"""What a training step costs, relative to cross-entropy on the same machine at the same moment (macs Table 9)."""

from __future__ import annotations

import time
from copy import deepcopy
from statistics import median

import torch

from ..errors import require
from ..models.classifier import Classifier
from ..objectives.base import Objective
from ..objectives.cross_entropy import CrossEntropy
from ..types import Batch
from .answer_measurements import Metrics
from .subjects import Subject


def step_cost(subject: Subject, steps: int = 10, batch_size: int | None = None) -> Metrics:
    """Median over pairs of steps of the time of a forward and backward pass over that of cross-entropy.

    Steps of both alternate, so that a machine that slows down slows both; timings are never exactly the same twice.
    """
    require(steps >= 1, "steps", "at least 1", steps)
    size = min(subject.recipe.training["batch_size"] if batch_size is None else batch_size, len(subject.data.train))
    batch = next(iter(subject.data.train.batches(size, device=subject.device)))
    model = deepcopy(subject.model).to(subject.device).train()
    own, baseline = deepcopy(subject.objective).to(subject.device), CrossEntropy()
    for objective in (own, baseline):  # the first steps also allocate
        seconds(model, objective, batch)
    pairs = [(seconds(model, own, batch), seconds(model, baseline, batch)) for _ in range(steps)]
    return {"relative": median(a / b for a, b in pairs), "milliseconds": 1000 * median(a for a, _ in pairs)}


def seconds(model: Classifier, objective: Objective, batch: Batch) -> float:
    """The time of one forward and backward pass."""
    began = time.perf_counter()
    objective(model, batch.images, batch.labels).total.backward()
    if batch.images.device.type != "cpu":
        torch.accelerator.synchronize()
    took = time.perf_counter() - began
    model.zero_grad(set_to_none=True)
    return took
