"""Why it is robust or not: one number for each measurement, and the figures of the papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..words import short, spoken
from .base import Model, Section
from .curvature import curvature_drawings
from .features import feature_drawings

MEANINGS = {
    "mean margin": "the right logit minus the best of the others; larger is safer for logits of the same size (macs Tab. 6)",
    "logit norm": "how large the logits are; confidence grows with it",
    "largest logit": "mean of the winning logit",
    "sensitivity": "how far noise moves the logits, for each unit of noise; smaller is steadier (macs Def. 4.3)",
    "prediction sensitivity": "how far noise moves the probabilities (macs Tab. 10)",
    "margin to sensitivity": "margin for each unit of movement: larger means more noise is needed to change an answer",
    "radius": "estimated distance to the nearest other answer; an estimate, no certificate (macs Thm 4.5)",
    "curvature": "how sharply the loss bends around an image; flat is robust (discriminative Eq. 21)",
    "hessian curvature": "the same from the Hessian itself",
    "fisher trace": "how much the answer depends on small changes of the image",
    "feature rms": "size of the features; confidence grows with it (representation-space 4.1)",
    "feature cosine": "how well features point at their class centre; 1 is exactly (representation-space 4.1)",
    "centre correlations": "how well the cosine to each kind of centre tells the confidence (representation-space Tab. 1)",
    "cone index": "how far features shrink before their class changes; never, in a cone (representation-space Tab. 5)",
    "bias dependence": "share of answers that change without the bias of the head (representation-space Fig. 9)",
    "neural collapse": "distance from classes that are single points, equally far apart; 0 is complete collapse",
    "certified accuracy": "right for certain within the radius, by randomised smoothing",
}


def geometry_section(models: Sequence[Model]) -> Section:
    """A row for each number that any model has, and the figures."""
    numbers = [dict(flat(measured(model))) for model in models]
    names = list(dict.fromkeys(name for row in numbers for name in row))
    rows = [{"name": name, "meaning": meaning(name), "cells": [row.get(name) for row in numbers]} for name in names]
    notes = [(model.name, note) for model in models for note in model.audit["geometry"].get("notes", ())]
    drawings = (*feature_drawings(models), *curvature_drawings(models))
    return Section("geometry", "Why: the geometry behind it", {"rows": rows, "notes": notes, "models": models}, drawings)


def measured(model: Model) -> dict[str, Any]:
    """All numbers of an audit's geometry by name."""
    found = model.audit["geometry"]
    own = {key: value for key, value in found.items() if key not in ("measured", "notes") and value is not None}
    return {**own, **(found.get("measured") or {})}


def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Nested names as "outer: inner", and every number as text with its interval."""
    for key, value in values.items():
        name = f"{before}: {spoken(key)}" if before else spoken(key)
        if isinstance(value, dict) and "value" in value:
            interval = "" if value.get("low") is None else f"{short(value['low'])} to {short(value['high'])}"
            yield name, {"value": short(value["value"]), "interval": interval}
        elif isinstance(value, dict):
            yield from flat(value, name)
        elif isinstance(value, (int, float)) or value is None:
            yield name, {"value": short(value), "interval": ""}


def meaning(name: str) -> str:
    """One line on a number, by its own name or by that of what it is part of."""
    return MEANINGS.get(name) or MEANINGS.get(name.split(":")[0], "")
