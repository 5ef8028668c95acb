"""All scores on clean images, with their intervals and what they mean."""

from __future__ import annotations

from collections.abc import Sequence

from ...metrics import PREDICTIONS, SHARE
from .base import Model, Section

BAND = "ece_if_calibrated"  # two numbers, which stand beside ECE on its card


def scores_section(models: Sequence[Model]) -> Section:
    """A row for each score that a model has."""
    rows = [
        {"metric": metric, "share": metric.unit == SHARE, "cells": [model.audit["calibration"].get(name) for model in models]}
        for name, metric in PREDICTIONS.items()
        if name != BAND and any(name in model.audit["calibration"] for model in models)
    ]
    return Section("scores", "All scores on clean images", {"rows": rows, "models": models})
