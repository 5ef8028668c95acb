"""What measurements share: the columns of one forward pass, means with intervals, numbers short enough for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..calibration.bootstrap import mean_estimate
from ..models.classifier import logit_margins
from ..types import Labels, Logits
from .base import STANDARD, Rows

if TYPE_CHECKING:
    from .context import Context

# The columns that every condition has: what one forward pass says of each image.


EXACT = 1e-30  # a smaller probability is taken from the logits


def columns_of(logits: Logits, labels: Labels, temperatures: Tensor | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Each column of `STANDARD` from logits on the CPU; `scaled_confidence` only where each image has a temperature.
    Those of promises are not from logits alone.

    `rank` is how many classes come before the label, 0 where the prediction is right; of equals the first counts.
    """
    labels = labels.cpu()
    probabilities = logits.softmax(1)
    own = probabilities.gather(1, labels[:, None]).squeeze(1).double()
    tiny = own < EXACT
    nll = torch.where(tiny, 0.0, -own.log())
    if bool(tiny.any()):
        exact = logits[tiny].double()
        nll[tiny] = exact.logsumexp(1) - exact.gather(1, labels[tiny, None]).squeeze(1)
    mine = logits.gather(1, labels[:, None])
    before = torch.arange(logits.shape[1]) < labels[:, None]
    rank = ((logits > mine) | ((logits == mine) & before)).sum(1)
    predicted = logits.argmax(1)
    columns: dict[str, Tensor] = {
        "label": labels,
        "predicted": predicted,
        "correct": predicted == labels,
        "confidence": probabilities.amax(1),
        "nll": nll.clamp_min_(0),
        "brier": (torch.linalg.vector_norm(probabilities, dim=1).double().square() - 2 * own + 1).clamp_min_(0),
        "rank": rank,
        "margin": logit_margins(logits.double(), labels),
        "logit_norm": torch.linalg.vector_norm(logits, dim=1, dtype=torch.float64),
        "largest_logit": logits.amax(1),
    }
    if temperatures is not None:
        columns["scaled_confidence"] = (logits.double() / temperatures.double()[:, None]).softmax(1).amax(1)
    return {name: values.numpy().astype(STANDARD[name]) for name, values in columns.items()}


# What summaries of geometry share: means with intervals, and numbers short enough for a page.


SHOWN = 2000  # images in a figure at most
CLASSES = 30  # in a figure at most


def means(context: Context, rows: Rows, columns: dict[str, str]) -> dict[str, Any]:
    """The mean of each column with its interval, by the name that it is measured under."""
    return {name: mean_of(context, rows, rows[column]) for name, column in columns.items()}


def mean_of(context: Context, rows: Rows, values: np.ndarray[Any, Any]) -> Any:
    """The mean of one number for each image of these rows, with its interval."""
    return mean_estimate(values.astype(np.float64), context.seed, context.intervals, ids=rows["index"])


def tensor(values: np.ndarray[Any, Any]) -> torch.Tensor:
    """A column as the functions of `geometry` take it, in float64."""
    return torch.from_numpy(values.astype(np.float64))


def rounded(values: np.ndarray[Any, Any] | torch.Tensor) -> list[float]:
    """Some of the values, short enough for a page."""
    return [float(f"{value:.4g}") for value in values[:SHOWN].tolist()]


def evenly(total: int, count: int) -> torch.Tensor:
    """At most `count` rows from all over `total`: the first ones may all be of one class."""
    return torch.linspace(0, total - 1, min(count, total), dtype=torch.float64).round().long()
