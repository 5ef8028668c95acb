"""A measurement compares a model's answers at several points: it must be one function at all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ..attacks.gradients import is_randomised
from ..models.observing import evaluating
from ..seeds import derive


@contextmanager
def steady(model: nn.Module) -> Iterator[None]:
    """Evaluation mode; a model that draws anew at every call draws the same each time, and torch's generator is left alone.

    Otherwise the difference of two draws would count as the difference of two points.
    """
    with evaluating(model):
        if not is_randomised(model):
            yield
            return
        hook = model.register_forward_pre_hook(seeded)
        try:
            with torch.random.fork_rng():
                yield
        finally:
            hook.remove()


def seeded(model: nn.Module, inputs: tuple[Any, ...]) -> None:
    """Torch's generator at the same place before every pass."""
    torch.manual_seed(derive("steady"))
