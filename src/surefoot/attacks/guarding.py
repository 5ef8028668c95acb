"""Attacks never change the model they look at, and say so when it is not the model that they were made for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from torch import nn

from ..models.observing import evaluating
from .pacing import Paced

logger = logging.getLogger("surefoot")
_TOLD: WeakSet[nn.Module] = WeakSet()


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


def is_randomised(model: nn.Module) -> bool:
    """Whether the model, or a model inside it, says that it draws anew at every call."""
    return any(getattr(layer, "randomised", False) is True for layer in model.modules())


def warn_if_randomised(model: nn.Module, remedy: str) -> None:
    """Log once for each model that a gradient of one draw is not the gradient of what the model does on average."""
    model = model.model if isinstance(model, Paced) else model
    if is_randomised(model) and model not in _TOLD:
        _TOLD.add(model)
        kind = type(model).__name__
        logger.warning("%s draws anew at every call, and this attack sees one draw at a time: %s.", kind, remedy)
