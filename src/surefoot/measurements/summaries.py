"""What summaries of geometry share: means with intervals, and numbers short enough for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..calibration.bootstrap import mean_estimate
from .base import Rows

if TYPE_CHECKING:
    from .context import Context

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
