"""Figures of classes in feature space: how wide, how far from a boundary, how stable their centres, what a bound says."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Drawing, drawing
from .base import Model, geometry_of, owner


def shape_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Up to four figures for each model that has the points."""
    from ..plots.centre_stability import centre_stability_figure
    from ..plots.class_shapes import class_shapes_figure
    from ..plots.hyperplane_distance import hyperplane_distance_figure
    from ..plots.mapping_bound import mapping_bound_figure

    found = []
    for place, model in enumerate(models):
        points, whose = geometry_of(model), owner(model, models)
        if shapes := points.get("class_shapes"):
            said = (
                "How wide each class is (dispersion) and how near its nearest image comes to a boundary (margin): narrow "
                "classes far from it are good, and a signed margin below 0 has an image on the wrong side."
            )
            figure = class_shapes_figure(shapes, shapes["names"])
            found.append(drawing(f"shapes-{place}", f"Width and margin of classes{whose}", said, figure))
        if distances := points.get("hyperplanes"):
            said = "How far the features of each image are from the nearest boundary of its class: left of the line is wrong."
            figure = hyperplane_distance_figure(distances)
            found.append(drawing(f"hyperplanes-{place}", f"Distance to the boundary{whose}", said, figure))
        if centres := points.get("centre_stability"):
            said = (
                "Class centres found with other learning rates, steps and schedules: cosines near 1 say that they point "
                "the same way, so that numbers about centres do not hang on how they were sought."
            )
            figure = centre_stability_figure(centres)
            found.append(drawing(f"centres-{place}", f"Centres over optimiser settings{whose}", said, figure))
        if bound := points.get("mapping"):
            said = (
                f"A bound on the share of class {bound['class']} outside a ball around its centre, and the parts it is the sum "
                "of: above the line at 1 it is vacuous, since no share is larger."
            )
            figure = mapping_bound_figure(bound)
            found.append(drawing(f"mapping-{place}", f"Bound on the mapping error{whose}", said, figure))
    return found
