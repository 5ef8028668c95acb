"""The parts of the page, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .base import Model, Section


def sections_of(models: Sequence[Model]) -> list[Section]:
    """Every part that these audits have something for."""
    from .attacks import attacks
    from .classes import classes
    from .corruptions import corruptions
    from .geometry import geometry
    from .groups import groups
    from .mistakes import mistakes
    from .provenance import provenance
    from .reliability import reliability
    from .scores import scores
    from .thresholds import thresholds

    order: list[Callable[[Sequence[Model]], Section | None]] = [
        *(reliability, corruptions, attacks, geometry, classes, groups, thresholds, mistakes, scores, provenance)
    ]
    return [section for build in order if (section := build(models)) is not None]
