"""Why it is robust or not: one number for each measurement, and the figures of the papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...metrics import facts
from ..words import short, spoken
from .base import Model, Section
from .bounds import bound_drawings
from .curvature import curvature_drawings
from .features import feature_drawings
from .layers import layer_drawings
from .margins import margin_drawings


def geometry_section(models: Sequence[Model]) -> Section:
    """A row for each number that any model has, and the figures."""
    numbers = [dict(flat(measured(model))) for model in models]
    paths = list(dict.fromkeys(path for row in numbers for path in row))
    rows = [{**explained(path), "cells": [row.get(path) for row in numbers]} for path in paths]
    notes = [(model.name, note) for model in models for note in model.audit["geometry"].get("notes", ())]
    inside = (*feature_drawings(models), *layer_drawings(models), *margin_drawings(models))
    drawings = (*inside, *curvature_drawings(models), *bound_drawings(models))
    return Section("geometry", "Why: the geometry behind it", {"rows": rows, "notes": notes, "models": models}, drawings)


def measured(model: Model) -> dict[str, Any]:
    """All numbers of an audit's geometry by name."""
    found = model.audit["geometry"]
    own = {key: value for key, value in found.items() if key not in ("measured", "notes") and value is not None}
    return {**own, **(found.get("measured") or {})}


def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Every number as text with its interval, by the path of its names."""
    for key, value in values.items():
        path = f"{before}.{key}" if before else key
        if isinstance(value, dict) and "value" in value:
            interval = "" if value.get("low") is None else f"{short(value['low'])} to {short(value['high'])}"
            yield path, {"value": short(value["value"]), "interval": interval}
        elif isinstance(value, dict):
            yield from flat(value, path)
        elif isinstance(value, (int, float)) or value is None:
            yield path, {"value": short(value), "interval": ""}


def explained(path: str) -> dict[str, str]:
    """What a number is called, with the name of the part below it, and one line on what it says."""
    whole, _, part = path.partition(".")
    metric = facts(whole)
    return {"name": f"{metric.label}: {spoken(part)}" if part else metric.label, "meaning": metric.meaning}
