"""The scores where people already count: a metric that is updated batch by batch, as torchmetrics has them, and a function as
`evaluate` has it. Both give what `scores` gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError, UnknownName, require
from ..types import Predictions
from .scoring import NAMES, estimates

KINDS = {"logits": Predictions.from_logits, "probabilities": Predictions.from_probabilities}


class Metric(nn.Module):
    """One score over batches: `update(predictions, labels)`, `compute()`, `reset()`, as a metric of torchmetrics.

    `of` says what the predictions are, "logits" or "probabilities". Called as a function it counts a batch and gives the score
    of that batch alone. Batches are kept until `reset`, in the memory of the processor. Between several processes `compute`
    gathers the batches of all.
    """

    higher_is_better: bool | None

    def __init__(self, name: str = "ece", *, of: str = "logits", bins: int = 15) -> None:
        from ..metrics import NEITHER, UP, find

        super().__init__()
        if name not in NAMES:
            raise UnknownName("score", name, NAMES)
        check_kind(of)
        require(bins >= 1, "bins", "at least 1", bins)
        self.name, self.of, self.bins = name, of, bins
        better = find(name).better
        self.higher_is_better = None if better == NEITHER else better == UP
        self._batches: list[Predictions] = []

    def update(self, predictions: Tensor, labels: Tensor) -> None:
        """Count a batch."""
        self._batches.append(self._read(predictions, labels))

    def compute(self) -> Tensor:
        """The score of everything that was counted."""
        batches = self._batches
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            everywhere: list[Any] = [None] * torch.distributed.get_world_size()
            torch.distributed.all_gather_object(everywhere, batches)
            batches = [batch for part in everywhere for batch in part]
        if not batches:
            raise SurefootError(f"{self.name} of no batch is not defined: call update first.")
        return self._score(Predictions.join(batches))

    def reset(self) -> None:
        """Forget every batch."""
        self._batches = []

    def forward(self, predictions: Tensor, labels: Tensor) -> Tensor:
        """Count a batch; the score of it alone."""
        self.update(predictions, labels)
        return self._score(self._batches[-1])

    def _read(self, predictions: Tensor, labels: Tensor) -> Predictions:
        return KINDS[self.of](predictions.detach().cpu(), labels.detach().cpu())

    def _score(self, predictions: Predictions) -> Tensor:
        return torch.tensor(float(estimates(predictions, [self.name], self.bins, intervals=0)[self.name]))


def compute(
    *, predictions: Any, references: Any, of: str = "logits", names: Sequence[str] = NAMES, bins: int = 15
) -> dict[str, float]:
    """Scores by name, as a metric of Hugging Face's `evaluate` gives them; `references` are the labels.

    `of` says what the predictions are, "logits" or "probabilities".
    """
    check_kind(of)
    require(bins >= 1, "bins", "at least 1", bins)
    given = KINDS[of](torch.as_tensor(predictions), torch.as_tensor(references))
    return {name: float(value) for name, value in estimates(given, names, bins, intervals=0).items()}


def check_kind(of: str) -> None:
    if of not in KINDS:
        raise UnknownName("kind of predictions", of, KINDS)
