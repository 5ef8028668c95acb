"""Figures of layers: where classes begin to come apart, clean and noisy (discriminative-noise Fig. 1, 12, 13, Thm 6.3)."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Drawing, drawing
from .base import Model, geometry_of, owner
from .complexity import inner_names


def layer_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Two figures for each model that has the points."""
    from ..plots.layer_projection import layer_projection_figure
    from ..plots.separation_by_layer import separation_by_layer_figure

    found = []
    for place, model in enumerate(models):
        points, whose = geometry_of(model), owner(model, models)
        if layers := points.get("layers"):
            said = (
                "Images by class (colour) at layers from first to last, clean above and with Gaussian noise of "
                f"{layers['level']:g} below: good layers keep the clusters apart in both rows. How far apart means nothing "
                "in t-SNE."
            )
            figure = layer_projection_figure({**layers, "blocks": inner_names(layers["blocks"])})
            found.append(drawing(f"layers-{place}", f"Classes at each layer{whose}", said, figure))
        if separation := points.get("separation"):
            said = (
                "How separate pairs of classes are at each layer, estimated from below: at log 2 they do not overlap at "
                "all; the other line is what the last layer forces on those before it, and says nothing at 0."
            )
            figure = separation_by_layer_figure({**separation, "blocks": inner_names(separation["blocks"])})
            found.append(drawing(f"separation-{place}", f"Separation of classes by layer{whose}", said, figure))
    return found
