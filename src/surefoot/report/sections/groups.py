"""Does it serve all groups alike."""

from __future__ import annotations

from collections.abc import Sequence

from .base import Model, Section


def groups_section(models: Sequence[Model]) -> Section | None:
    """Every group of every model, the worst first; None where nobody named groups."""
    rows = [{"model": model.name, **row} for model in models for row in model.audit.get("groups", ())]
    if not rows:
        return None
    rows.sort(key=lambda row: row["accuracy"]["value"])
    return Section("groups", "Does it serve all groups alike?", {"rows": rows, "several": len(models) > 1})
