"""Attacks never change the model they look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from ..models.observing import evaluating


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without parameter gradients inside the block; all as before afterwards, even after an error."""
    wanted = {parameter: parameter.requires_grad for parameter in model.parameters()}
    with evaluating(model):
        try:
            for parameter in wanted:
                parameter.requires_grad_(False)
            yield
        finally:
            for parameter, flag in wanted.items():
                parameter.requires_grad_(flag)
