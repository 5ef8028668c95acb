"""When it should ask a person: the confidence that holds a wanted error rate."""

from __future__ import annotations

from collections.abc import Sequence

from ..advice import threshold_words
from ..words import threshold
from .base import Model, Section


def thresholds_section(models: Sequence[Model]) -> Section | None:
    """A row for each wanted error rate and model."""
    rows = [
        {"model": model.name, "words": threshold_words(row), "bounds": [threshold(each) for each in row["thresholds"]], **row}
        for model in models
        for row in model.audit.get("thresholds", ())
    ]
    if not rows:
        return None
    return Section("thresholds", "When should it ask a person?", {"rows": rows, "several": len(models) > 1})
