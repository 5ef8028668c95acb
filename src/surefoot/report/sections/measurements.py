"""Measurements beyond those of the page: the user's own, and others that were asked for."""

from __future__ import annotations

from collections.abc import Sequence

from ...auditing.frames import leaves
from .base import Model, Section


def measurements_section(models: Sequence[Model]) -> Section | None:
    """A row for each number of each model; None where nothing was measured beyond the page."""
    rows = [
        {"label": label, "model": model.name, "number": ".".join(words), "value": value, "low": low, "high": high}
        for label in dict.fromkeys(label for model in models for label in model.audit.get("measurements") or {})
        for model in models
        for words, value, low, high in leaves((model.audit.get("measurements") or {}).get(label, {}))
    ]
    return Section("measurements", "Your measurements", {"rows": rows, "several": len(models) > 1}) if rows else None
