"""When the picture is of something else: how well foreign pictures are told, the joint risk, and what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..figures import Drawing, drawing
from ..plots.base import interval_figure
from ..words import spoken
from .base import Model, Section, owner
from .corruptions import class_name


def foreign_section(models: Sequence[Model]) -> Section | None:
    """None where no model was shown foreign pictures."""
    having = [model for model in models if (model.audit.get("foreign") or {}).get("sets")]
    if not having:
        return None
    shown = [
        {
            "model": model.name,
            "tables": [table_of(model, near) for near in (True, False) if sets_of(model, near)],
            "pictures": pictures_of(model),
            **{key: model.audit["foreign"][key] for key in ("images", "fitted_on", "answered", "wanted_risk")},
        }
        for model in having
    ]
    values = {"shown": shown, "several": len(models) > 1}
    drawings = tuple(mixture_figure(index, model, models) for index, model in enumerate(having))
    return Section("foreign", "When the picture is of something else", values, drawings)


def sets_of(model: Model, near: bool) -> dict[str, Any]:
    """The sets that are near, or far."""
    return {name: found for name, found in model.audit["foreign"]["sets"].items() if found["near"] == near}


def table_of(model: Model, near: bool) -> dict[str, Any]:
    """A row for each score, a column for each set; the best is marked, and so is what cannot be told from it."""
    sets = sets_of(model, near)
    names = list(dict.fromkeys(name for found in sets.values() for name in found["scores"]))
    rows = [
        {"score": name, "cells": [{**found["scores"][name], "mark": mark(name, found)} for found in sets.values()]}
        for name in names
    ]
    heads = [
        {"name": name, **{key: found[key] for key in ("images", "foreign_answered", "confidence")}}
        for name, found in sets.items()
    ]
    return {"title": "Near" if near else "Far from", "sets": heads, "rows": rows}


def mark(name: str, found: dict[str, Any]) -> str:
    """Whether a score is the best of a set, or not worse beyond the doubt of the draws."""
    if name == found["best"]:
        return "best"
    high = found["scores"][name]["auroc_difference"]["high"]
    return "as good" if high is not None and high >= 0 else ""


def pictures_of(model: Model) -> list[dict[str, Any]]:
    """The foreign pictures of each set that the model was surest of."""
    classes = model.audit["subject"].get("classes") or []
    return [
        {"name": name, "rows": [{**row, "answer": class_name(classes, row["answer"])} for row in rows]}
        for name, rows in (model.audit["points"].get("foreign") or {}).items()
    ]


def mixture_figure(index: int, model: Model, models: Sequence[Model]) -> Drawing:
    """The joint risk as a curve over mixtures: by confidence, and by the score that lowers it most."""
    foreign = model.audit["foreign"]
    groups = [
        {
            f"{spoken(name)}, {score}": [(float(mixture), number) for mixture, number in risks.items()]
            for score, risks in found["mixtures"].items()
        }
        for name, found in foreign["sets"].items()
    ]
    said = (
        f"The share of answers that are wrong or of a foreign picture, where {100 * foreign['answered']:.1f} % of the known "
        "pictures are answered, by the share of foreign pictures among all: by the model's own confidence (msp), and by the "
        "score that lowers it most at one foreign picture in ten."
    )
    figure = interval_figure(groups, "share of foreign pictures", "joint risk")
    return drawing(f"mixtures-{index}", "Wrong or foreign: the joint risk" + owner(model, models), said, figure)
