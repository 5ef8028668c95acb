"""The wrong answers that it was surest of, as pictures."""

from __future__ import annotations

from collections.abc import Sequence

from .base import Model, Section
from .corruptions import class_name


def mistakes_section(models: Sequence[Model]) -> Section | None:
    """Pictures with what they are and what they were taken for."""
    shown = []
    for model in models:
        known = model.audit["subject"].get("classes") or []
        rows = [
            {**row, "label": class_name(known, row["label"]), "answer": class_name(known, row["answer"])}
            for row in model.audit["points"].get("mistakes") or ()
        ]
        if rows:
            shown.append({"model": model.name, "rows": rows})
    return Section("mistakes", "Its most confident mistakes", {"shown": shown, "several": len(models) > 1}) if shown else None
