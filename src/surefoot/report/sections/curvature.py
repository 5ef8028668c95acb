"""Figures of curvature: flat images withstand noise (discriminative-noise Fig. 8 to 10)."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Drawing, drawing
from .base import Model, geometry_of


def curvature_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Accuracy by curvature, curvature by right answers, and the spread of several models."""
    from ..plots.accuracy_by_curvature import accuracy_by_curvature_figure
    from ..plots.curvature_by_count import curvature_by_count_figure
    from ..plots.curvature_spread import curvature_spread_figure

    held = {model.name: each for model in models if "by_count" in (each := geometry_of(model).get("curvature") or {})}
    found: list[Drawing] = []
    if held:
        said = (
            "Accuracy under noise on the images where the loss bends least: a line that falls says that flat images are safer."
        )
        figure = accuracy_by_curvature_figure({name: each["accuracy"] for name, each in held.items()})
        found.append(drawing("accuracy-by-curvature", "Accuracy under noise, by curvature", said, figure))
    for place, (name, each) in enumerate(held.items()):
        whose = f": {name}" if len(models) > 1 else ""
        said = (
            "Mean curvature of images by how often they were right in ten noisy draws; it falls to the right where what bends "
            "more is wrong more often."
        )
        figure = curvature_by_count_figure(each["by_count"])
        found.append(drawing(f"curvature-by-count-{place}", f"Curvature by right answers{whose}", said, figure))
    if held:
        said = (
            "How curvature is spread over the nine tenths of the images with the lowest: the box holds the middle half of them."
        )
        figure = curvature_spread_figure({name: each["spread"] for name, each in held.items()})
        found.append(drawing("curvature-spread", "Spread of curvature", said, figure))
    return found
