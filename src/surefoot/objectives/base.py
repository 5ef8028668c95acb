"""What every training method is: a module called with the model, giving a weighted sum of named terms."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError
from ..types import Images, Labels, Logits, Terms
from ..views.table import describe_view


class Objective(nn.Module):
    """Calls the model as often as it needs and gives the terms of its loss.

    Constructor arguments are kept as attributes of the same name, so that `options()` can read them back.
    State, such as class centroids, lives in buffers and is saved with the run.
    """

    def __init__(self) -> None:
        super().__init__()

    def forward(self, model: nn.Module, images: Images, labels: Labels, *, generator: torch.Generator | None = None) -> Terms:
        raise TypeError(f"{type(self).__name__} must define forward(model, images, labels, *, generator=None).")

    def prepare(self, num_classes: int, feature_dim: int) -> None:
        """Take the model's sizes before training; called by `fit`, and by methods that need them at their first step."""

    def predictor(self, model: nn.Module) -> nn.Module:
        """What to use at test time."""
        return model

    def options(self) -> dict[str, Any]:
        """The constructor arguments that would make this objective again, a view in words and numbers."""
        given = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        return {name: describe_view(value) if name.endswith("view") else value for name, value in given.items()}


class NotFinite(SurefootError):
    """A loss that is not a number, with the names of the terms that broke."""

    def __init__(self, terms: list[str], logits: Logits) -> None:
        self.terms = terms
        bad = int((~torch.isfinite(logits)).any(1).sum())
        cause = f"logits must be finite, got NaN or infinity for {bad} of {len(logits)} images" if bad else "it overflowed"
        super().__init__(f"The term {', '.join(terms)} is not finite: {cause}.")


def weighted_sum(logits: Logits, **terms: tuple[float, Tensor]) -> Terms:
    """`Terms` from (weight, value) by name; the parts are logged without their weights.

    A value that is not finite is an error at once on the CPU; elsewhere asking would make the device wait.
    """
    total = torch.stack([weight * value for weight, value in terms.values()]).sum()
    if total.device.type == "cpu" and not bool(torch.isfinite(total)):
        broken = [name for name, (_, value) in terms.items() if not bool(torch.isfinite(value))]
        raise NotFinite(broken or ["total"], logits.detach())
    return Terms(total, {name: value.detach() for name, (_, value) in terms.items()}, logits)
