"""Figures of the loss and the logits around images: slopes, how far the loss can change, and maps of it."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Drawing, drawing
from .base import Model, geometry_of, owner


def slope_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Up to three figures for each model that has the points."""
    from ..plots.landscape import landscape_map_figure
    from ..plots.local_lipschitz import local_lipschitz_figure
    from ..plots.loss_change import loss_change_figure

    found = []
    for place, model in enumerate(models):
        points, whose = geometry_of(model), owner(model, models)
        if slopes := points.get("slopes"):
            said = (
                "Each point is an image: how steeply its lead over another class falls, and how far away the other answer "
                "is if the slope stays as it is; up and left is safer, and nothing is certified."
            )
            figure = local_lipschitz_figure(slopes)
            found.append(drawing(f"slopes-{place}", f"Slope and distance to another answer{whose}", said, figure))
        if change := points.get("loss_change"):
            said = (
                f"How much the loss of each image can grow within a distance of {change['distance']:g}, against what its "
                "slope alone would say: height above the dashed line is curvature."
            )
            figure = loss_change_figure(change)
            found.append(drawing(f"loss-change-{place}", f"How far the loss can change{whose}", said, figure))
        if landscape := points.get("landscape"):
            said = (
                "The loss around two images (dots), upwards along its gradient and sideways across it: even colours are a "
                "smooth loss, in two directions of thousands."
            )
            figure = landscape_map_figure(landscape)
            found.append(drawing(f"landscape-{place}", f"The loss around images{whose}", said, figure))
    return found
