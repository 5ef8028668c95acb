"""What every training method is: a module called with the model."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from ..types import Images, Labels, Terms


class Objective(nn.Module):
    """Calls the model as often as it needs and gives the terms of its loss.

    Constructor arguments are kept as attributes of the same name, so that `options()` can read them back.
    State, such as class centroids, lives in buffers and is saved with the run.
    """

    def __init__(self) -> None:
        super().__init__()

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        raise TypeError(f"{type(self).__name__} must define forward(model, images, labels, *, generator=None).")

    def predictor(self, model: nn.Module) -> nn.Module:
        """What to use at test time."""
        return model

    def options(self) -> dict[str, Any]:
        """The constructor arguments that would make this objective again."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
