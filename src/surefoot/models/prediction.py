"""One pass of a model over a split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import nn

from ..errors import SurefootError
from ..types import Batch, Predictions
from .observing import evaluating


def predict(model: nn.Module, batches: Iterable[Batch], device: torch.device | str = "cpu") -> Predictions:
    """Logits for every batch, in evaluation mode, gathered on the CPU."""
    logits, labels, indices = [], [], []
    with evaluating(model), torch.inference_mode():
        for batch in batches:
            logits.append(model(batch.images.to(device)).float().cpu())
            labels.append(batch.labels.cpu())
            indices.append(batch.indices)
    if not logits:
        raise SurefootError("The split has no images.")
    return Predictions.from_logits(torch.cat(logits), torch.cat(labels), indices=torch.cat(indices))


def transformed(batches: Iterable[Batch], change: Callable[[Batch], torch.Tensor]) -> Iterator[Batch]:
    """The same batches with their images changed."""
    for batch in batches:
        yield Batch(change(batch), batch.labels, batch.indices)


def pick_device(device: str = "auto") -> torch.device:
    """The device to compute on: an accelerator when there is one and none is named."""
    if device != "auto":
        try:
            return torch.empty(0, device=device).device
        except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch raises each of them, by backend
            reason = str(error).splitlines()[0]
            raise SurefootError(f"device must be one that this machine has, got '{device}' ({reason})") from error
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    return torch.device("cpu")
