"""Figures of the loss and the logits around images: slopes, how far the loss can change, and maps of it."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Drawing
from .base import Kind, Model, drawings_of

SLOPES = (
    "Each point is an image: how steeply its lead over another class falls, and how far away the other answer is if the slope "
    "stays as it is; up and left is safer, and nothing is certified."
)
CHANGE = (
    "How much the loss of each image can grow within a distance of {0[distance]:g}, against what its slope alone would say: "
    "height above the dashed line is curvature."
)
MAPS = (
    "The loss around two images (dots), upwards along its gradient and sideways across it: even colours are a smooth loss, in "
    "two directions of thousands."
)


def slope_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Up to three figures for each model that has the points."""
    from ..plots.landscape import landscape_map_figure
    from ..plots.local_lipschitz import local_lipschitz_figure
    from ..plots.loss_change import loss_change_figure

    kinds = (
        Kind("slopes", "slopes", "Slope and distance to another answer", SLOPES, local_lipschitz_figure),
        Kind("loss_change", "loss-change", "How far the loss can change", CHANGE, loss_change_figure),
        Kind("landscape", "landscape", "The loss around images", MAPS, landscape_map_figure),
    )
    return drawings_of(models, kinds)
