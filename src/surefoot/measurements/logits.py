"""The logits themselves: how large they are, and how far the right one leads (macs Table 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.bootstrap import mean_estimate
from .base import Measurement, Rows, Summary, Table
from .summaries import SHOWN, rounded

if TYPE_CHECKING:
    from .context import Context

MEANS = {"mean_margin": "margin", "logit_norm": "logit_norm", "largest_logit": "largest_logit"}
POINTS = {"values": "margin", "norms": "logit_norm", "largest": "largest_logit"}


def logit_geometry(rows: Rows, seed: int, draws: int = 1000) -> dict[str, Any]:
    """What the logits alone say (macs Tab. 6)."""
    ids = rows.get("index")
    return {name: mean_estimate(rows[column].astype(np.float64), seed, draws, ids=ids) for name, column in MEANS.items()}


def logit_points(rows: Rows) -> dict[str, Any]:
    """Margin, norm and largest logit of images from all over the split, with their means over all of it."""
    count = len(rows["margin"])
    where = np.linspace(0, count - 1, min(SHOWN, count)).round().astype(np.int64)
    shown: dict[str, Any] = {name: rounded(rows[column][where]) for name, column in POINTS.items()}
    columns = {"mean_margin": "margin", "mean_norm": "logit_norm", "mean_largest": "largest_logit"}
    return shown | {name: float(rows[column].mean(dtype=np.float64)) for name, column in columns.items()}


class LogitStatistics(Measurement):
    """Mean norm of the logits, largest logit and margin, over all images (macs Table 6)."""

    part = "geometry"

    def summarise(self, context: Context, table: Table, found: Any) -> Summary:
        rows = table.clean(self.max_images)
        values = logit_geometry(rows, context.seed, context.intervals)
        row = {"norm": values["logit_norm"], "largest": values["largest_logit"], "margin": values["mean_margin"]}
        return Summary(values, {"logits": logit_points(rows)}, row=row)
