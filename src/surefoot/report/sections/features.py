"""Figures of the representation space: size, direction and confidence of features, attacks on them, the plane."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Drawing, drawing
from ..words import attack_name
from .base import Model, geometry_of, owner


def feature_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Up to four figures for each model that has the points."""
    from ..plots.feature_displacement import feature_displacement_figure
    from ..plots.feature_scatter import feature_scatter_figure
    from ..plots.plane import plane_figure
    from ..plots.success_by_bin import success_by_bin_figure

    found = []
    for place, model in enumerate(models):
        points, whose = geometry_of(model), owner(model, models)
        if features := points.get("features"):
            said = (
                "Each point is an image: how large its features are, how well they point at the centre of their class, and in "
                "colour how sure the model is. Where colour follows height alone, confidence is a matter of direction."
            )
            figure = feature_scatter_figure(features, features["confidence"])
            found.append(drawing(f"features-{place}", f"Size, direction and confidence{whose}", said, figure))
            if success := features.get("success"):
                by = attack_name(features.get("broken_by") or "an attack")
                said = (
                    f"How many images point how well at their class centre, and how many of the right ones {by} breaks in each "
                    "bin. The usual picture: what points elsewhere is broken first."
                )
                figure = success_by_bin_figure(success)
                found.append(drawing(f"success-{place}", f"Direction and attack success{whose}", said, figure))
        if moved := points.get("perturbation"):
            said = "How far the attack moves the features of each image, against their size; the cross is the mean."
            figure = feature_displacement_figure(moved)
            found.append(drawing(f"displacement-{place}", f"How far an attack moves features{whose}", said, figure))
        if plane := points.get("plane"):
            said = (
                "The whole representation space of a model with two or three features: regions of classes, lines of equal "
                "confidence, and the ways that PGD drives some images."
            )
            figure = plane_figure(plane["plane"], plane["path"])
            found.append(drawing(f"plane-{place}", f"The plane of features{whose}", said, figure))
    return found
