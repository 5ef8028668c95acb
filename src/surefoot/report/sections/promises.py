"""Where promises break: a map of kept, broken and not to be told, by what happens to the picture and how severely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...measurements.promises import UNKNOWN
from ..words import attack_name, spoken
from .base import Model, Section

KINDS = {"coverage": "coverage_promise", "risk": "risk_promise"}
CLEAN = "clean"
ONCE = ""  # the severity of what has none


def promises_section(models: Sequence[Model]) -> Section | None:
    """None where nothing was promised, or nothing but clean pictures was looked at."""
    having = [model for model in models if len((model.audit.get("promises") or {}).get("conditions", ())) > 1]
    if not having:
        return None
    shown = [
        {
            "model": model.name,
            "maps": [{"kind": kind, "groups": groups_of(rows)} for kind in KINDS if (rows := rows_of(model, kind))],
            "clean": model.audit["promises"]["conditions"][CLEAN],
            **{key: model.audit["promises"][key] for key in ("coverage", "wanted_risk", "confidence", "notes")},
        }
        for model in having
    ]
    return Section("promises", "Where promises break", {"shown": shown, "several": len(models) > 1})


def rows_of(model: Model, kind: str) -> list[dict[str, Any]]:
    """A row for each corruption, noise or attack, with its cells by severity and where the promise is first broken."""
    promises = model.audit["promises"]
    rows: dict[str, dict[str, Any]] = {}
    for condition, numbers in promises["conditions"].items():
        if condition == CLEAN:
            continue
        name, severity = parted(condition)
        first = promises["first_broken"][kind].get(name)
        row = rows.setdefault(
            name, {"title": spoken(attack_name(name)), "cells": {}, "first": "never" if first is None else f"{first:g}"}
        )
        row["cells"][severity] = {"state": numbers[KINDS[kind]], "number": numbers[kind], "size": numbers["set_size"]}
        if first is None and numbers[KINDS[kind]] == UNKNOWN:
            row["first"] = UNKNOWN
    return list(rows.values())


def parted(condition: str) -> tuple[str, str]:
    """`fog/3` is fog and 3; an attack without a budget has no severity."""
    name, _, severity = condition.rpartition("/")
    return (name, severity) if name and severity.replace(".", "", 1).isdigit() else (condition, ONCE)


def groups_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that share their severities share a table; none where nothing can be told of any."""
    if all(cell["number"]["value"] is None for row in rows for cell in row["cells"].values()):
        return []
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        severities = sorted(row["cells"], key=lambda severity: -1.0 if severity == ONCE else float(severity))
        groups.setdefault(tuple(severities), []).append(row)
    return [{"severities": severities, "rows": group} for severities, group in groups.items()]
