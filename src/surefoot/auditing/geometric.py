"""Why a model is robust or not: the geometry that an audit measures."""

from __future__ import annotations

from typing import Any

from ..calibration.bootstrap import mean_estimate
from ..geometry.logit_margins import logit_margins
from ..types import Predictions
from .records import Workbook
from .result import Geometry
from .setting import Setting
from .steps import Step


def geometry_steps(setting: Setting) -> list[Step]:
    """The measurements that need the model."""
    return []


def summarise_geometry(setting: Setting, book: Workbook, clean: Predictions) -> Geometry:
    return logit_geometry(clean, setting.seed)


def logit_geometry(clean: Predictions, seed: int) -> Geometry:
    """What the logits alone say (macs Tab. 6)."""
    return Geometry(
        mean_margin=mean_estimate(logit_margins(clean.logits, clean.labels), seed),
        logit_norm=mean_estimate(clean.logits.double().norm(dim=1), seed),
        largest_logit=mean_estimate(clean.logits.double().amax(1), seed),
    )


def geometry_points(setting: Setting, book: Workbook, clean: Predictions) -> dict[str, Any]:
    """What the figures of geometry draw."""
    return {}
