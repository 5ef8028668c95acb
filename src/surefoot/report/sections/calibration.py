"""Does its confidence mean what it says: the reliability diagram, thresholds of confidence, and all scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...metrics import PREDICTIONS, SHARE
from ..advice import threshold_words
from ..words import Audit, threshold
from .base import Model, Section

BAND = "ece_if_calibrated"  # two numbers, which stand beside ECE on its card
KINDS = {"temperatures": "temperature", "feature_scales": "feature scale"}


def reliability_section(models: Sequence[Model]) -> Section:
    """Bins of every model at every step of its grids."""
    sliders = [{"name": model.name, "colour": model.colour, "fitted": fitted(model), "grids": grids(model)} for model in models]
    kinds = {key: name for key, name in KINDS.items() if any(key in slider["grids"] for slider in sliders)}
    scaled = [model for model in models if model.audit.get("temperature")]
    corrupted = any(model.audit["temperature"].get("corrupted_ece") for model in scaled)
    values = {"kinds": kinds, "sliders": sliders, "scaled": scaled, "corrupted": corrupted}
    return Section("reliability", "Does its confidence mean what it says?", values, data={"sliders": sliders})


def fitted(model: Model) -> list[float]:
    """The temperatures that were fitted, as they stand in the grid."""
    scaling = model.audit.get("temperature")
    return [round(value, 6) for value in scaling["temperatures"]] if scaling else []


def grids(model: Model) -> dict[str, Any]:
    """The grids of an audit; a grid of the one temperature 1 where there is none."""
    points, scores = model.audit["points"], model.audit["calibration"]
    by_kind = {key: points[key] for key in KINDS if points.get(key)}
    if "temperatures" not in by_kind:
        bins = {key: [points["reliability"][key]] for key in ("counts", "confidences", "correct")}
        by_kind["temperatures"] = {"values": [1.0], **bins, "ece": [scores["ece"]["value"]], "nll": [scores["nll"]["value"]]}
    return by_kind


def thresholds_section(models: Sequence[Model]) -> Section | None:
    """A row for each wanted error rate and model."""
    rows = [
        {"model": model.name, "words": threshold_words(row), "bounds": bounds(row), **row}
        for model in models
        for row in model.audit.get("thresholds", ())
    ]
    if not rows:
        return None
    promised = any(row.get("confidence") is not None for row in rows)
    values = {"rows": rows, "several": len(models) > 1, "promised": promised}
    return Section("thresholds", "When should it ask a person?", values)


def bounds(row: Audit) -> list[str]:
    """The threshold to use; those of the halves where there is no such one."""
    return [threshold(each) for each in ([row["deploy"]] if row.get("deploy") is not None else row["thresholds"])]


def scores_section(models: Sequence[Model]) -> Section:
    """A row for each score that a model has."""
    known = [{**model.audit["calibration"], **(model.audit.get("recognition") or {})} for model in models]
    rows = [
        {"metric": metric, "share": metric.unit == SHARE, "cells": [scores.get(name) for scores in known]}
        for name, metric in PREDICTIONS.items()
        if name != BAND and any(isinstance(scores.get(name), dict) for scores in known)
    ]
    return Section("scores", "All scores on clean images", {"rows": rows, "models": models})
