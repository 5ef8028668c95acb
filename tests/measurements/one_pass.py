"""What the pass over images does, for one measurement on a set in memory: columns in chunks, `run`, and the summary."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from surefoot.data.dataset import whole
from surefoot.measurements.base import Measurement, Rows, Summary, Table
from surefoot.measurements.context import Context
from surefoot.measurements.summaries import columns_of


class Held(Table):
    """Clean rows, of the images that a measurement asked for."""

    def __init__(self, rows: Rows) -> None:
        self.held = rows

    def clean(self, max_images: int | None = None) -> Rows:
        return self.held


def context_of(model: torch.nn.Module, data: Any, **options: Any) -> Context:
    return Context(model, data, data.test, torch.device("cpu"), **options)


def rows_of(measurement: Measurement, context: Context, chunk: int = 1000) -> Rows:
    """The standard columns and the measurement's own, float32 as the table stores them."""
    batch = whole(context.subset(measurement.max_images), context.batch_size, context.device)
    rows = dict(columns_of(context.forward(batch.images, "clean"), batch.labels))
    parts = [batch[start : start + chunk] for start in range(0, len(batch), chunk)]
    found = [measurement.columns(context, part) for part in parts]
    assert all(tuple(each) == measurement.adds for each in found)
    for name in measurement.adds:
        rows[name] = np.concatenate([each[name].detach().cpu().numpy().astype(np.float32) for each in found])
    rows["index"] = batch.indices.numpy()
    return rows


def summary_of(measurement: Measurement, context: Context, chunk: int = 1000) -> Summary:
    found = measurement.run(context)
    check_plain(found)
    return measurement.summarise(context, Held(rows_of(measurement, context, chunk)), found)


def numbers_of(measurement: Measurement, context: Context) -> dict[str, float]:
    """The row of a study's table."""
    return measurement.numbers(summary_of(measurement, context))


def check_plain(value: Any) -> None:
    """What `run` gives can be kept: no tensors or arrays."""
    if isinstance(value, dict):
        for each in value.values():
            check_plain(each)
    elif isinstance(value, list | tuple):
        for each in value:
            check_plain(each)
    else:
        assert value is None or isinstance(value, int | float | str | bool), type(value)
