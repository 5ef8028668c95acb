"""The loss around one image (discriminative-noise Fig. 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def landscape_figure(result: dict[str, Any], image: int = 0) -> go.Figure:
    """The negative loss as a surface, with the image as a black dot, from `plain(loss_landscape(...))`."""
    offsets = result["offsets"]
    heights = [[-value for value in row] for row in result["loss"][image]]
    figure = new_figure("", "")
    # rows of z are y: the gradient's direction
    figure.add_surface(x=offsets, y=offsets, z=heights, colorscale="Viridis", showscale=False)
    middle = len(offsets) // 2
    dot = {"x": [offsets[middle]], "y": [offsets[middle]], "z": [heights[middle][middle]]}
    figure.add_scatter3d(**dot, mode="markers", marker={"color": "black", "size": 5}, name="image")
    titles = {"xaxis": "orthogonal", "yaxis": "gradient", "zaxis": "negative loss"}
    figure.update_layout(scene={axis: {"title": {"text": title}} for axis, title in titles.items()})
    return figure
