"""A model that counts its passes, shows them, and ends the work when time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch import nn

from ..types import Images, Logits


class OutOfTime(Exception):
    """Raised from inside a forward pass; `images` are adversarial where an image was broken before, if the attack knows any."""

    def __init__(self) -> None:
        super().__init__("the time budget is used up")
        self.images: Images | None = None


class Paced(nn.Module):
    """The model itself to whoever attacks it."""

    def __init__(self, model: nn.Module, seconds: float | None, tick: Callable[[int], None]) -> None:
        super().__init__()
        self.model, self.tick, self.passes = model, tick, 0
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.training = model.training

    def forward(self, images: Images) -> Logits:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTime
        self.passes += 1
        self.tick(self.passes)
        logits: Logits = self.model(images)
        return logits

    def __getattr__(self, name: str) -> Any:
        """Whatever else the model has."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)
