"""What every training method is: a module called with the model, giving a weighted sum of named terms."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError
from ..types import Images, Labels, Logits, Terms
from ..views.table import describe_view


class Objective(nn.Module):
    """Calls the model as often as it needs and gives the terms of its loss.

    Constructor arguments are kept as attributes of the same name, so that `options()` can read them back.
    State, such as class centroids, lives in buffers and is saved with the run. With `second_augmentation` a training loop puts
    the images, augmented by other draws, into `second` before each call.
    """

    second_augmentation = False
    second: Images | None = None

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


# How far predictions are from each other, for each image, from logits; in float32 at least, and finite for finite logits.


def log_probabilities(logits: Logits) -> Tensor:
    """log p, in float32 or better whatever the precision of the model."""
    return logits.log_softmax(1, dtype=torch.float64 if logits.dtype == torch.float64 else torch.float32)


def kl(p: Logits, q: Logits) -> Tensor:
    """D(p || q) = sum_k p_k (log p_k - log q_k) for each image, with gradient through both sides."""
    log_p, log_q = log_probabilities(p), log_probabilities(q)
    return (log_p.exp() * (log_p - log_q)).sum(1)


def jensen_shannon(predictions: Sequence[Logits]) -> Tensor:
    """The mean of D(p_i || m) with m the mean of the p_i, for each image (magnma Eq. 5)."""
    log_p = torch.stack([log_probabilities(logits) for logits in predictions])
    log_mean = log_p.logsumexp(0) - math.log(len(predictions))
    return (log_p.exp() * (log_p - log_mean)).sum(2).mean(0)
