"""Figures of classes in feature space: how wide, how far from a boundary, how stable their centres, what a bound says."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Drawing
from .base import Kind, Model, drawings_of

WIDTHS = (
    "How wide each class is (dispersion) and how near its nearest image comes to a boundary (margin): narrow classes far from "
    "it are good, and a signed margin below 0 has an image on the wrong side."
)
DISTANCES = "How far the features of each image are from the nearest boundary of its class: left of the line is wrong."
CENTRES = (
    "Class centres found with other learning rates, steps and schedules: cosines near 1 say that they point the same way, so "
    "that numbers about centres do not hang on how they were sought."
)
BOUND = (
    "A bound on the share of class {0[class]} outside a ball around its centre, and the parts it is the sum of: above the line "
    "at 1 it is vacuous, since no share is larger."
)


def shape_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Up to four figures for each model that has the points."""
    from ..plots.centre_stability import centre_stability_figure
    from ..plots.class_shapes import class_shapes_figure
    from ..plots.hyperplane_distance import hyperplane_distance_figure
    from ..plots.mapping_bound import mapping_bound_figure

    kinds = (
        Kind("class_shapes", "shapes", "Width and margin of classes", WIDTHS, lambda p: class_shapes_figure(p, p["names"])),
        Kind("hyperplanes", "hyperplanes", "Distance to the boundary", DISTANCES, hyperplane_distance_figure),
        Kind("centre_stability", "centres", "Centres over optimiser settings", CENTRES, centre_stability_figure),
        Kind("mapping", "mapping", "Bound on the mapping error", BOUND, mapping_bound_figure),
    )
    return drawings_of(models, kinds)
