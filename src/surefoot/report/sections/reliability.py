"""Does its confidence mean what it says: the reliability diagram, live over temperatures and feature scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import Model, Section

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
    found = model.audit.get("temperature")
    return [round(value, 6) for value in found["temperatures"]] if found else []


def grids(model: Model) -> dict[str, Any]:
    """The grids of an audit; a grid of the one temperature 1 where there is none."""
    points, scores = model.audit["points"], model.audit["calibration"]
    found = {key: points[key] for key in KINDS if points.get(key)}
    if "temperatures" not in found:
        bins = {key: [points["reliability"][key]] for key in ("counts", "confidences", "correct")}
        found["temperatures"] = {"values": [1.0], **bins, "ece": [scores["ece"]["value"]], "nll": [scores["nll"]["value"]]}
    return found
