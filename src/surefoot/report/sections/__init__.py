"""The parts of the page, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .base import Model, Section


def sections_of(models: Sequence[Model]) -> list[Section]:
    """Every part that these audits have something for."""
    from .attacks import attacks_section
    from .calibration import reliability_section, scores_section, thresholds_section
    from .classes import classes_section, groups_section, mistakes_section
    from .corruptions import corruptions_section
    from .foreign import foreign_section
    from .geometry import geometry_section
    from .promises import promises_section
    from .provenance import measurements_section, provenance_section

    order: list[Callable[[Sequence[Model]], Section | None]] = [  # by what a person acts on; what only explains comes last
        *(classes_section, groups_section, mistakes_section, reliability_section, thresholds_section, corruptions_section),
        *(promises_section, attacks_section, foreign_section, measurements_section, scores_section, geometry_section),
        provenance_section,
    ]
    return [section for build in order if (section := build(models)) is not None]
