"""Loss of one class and its gradient over a two-dimensional representation space (representation-space Fig. 2b, 5, 13a)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...errors import require
from .base import new_figure
from .plane import places, transposed

if TYPE_CHECKING:
    from plotly import graph_objects as go


def loss_field_figure(result: dict[str, Any], path: dict[str, Any] | None = None) -> go.Figure:
    """Loss as colour, gradient directions as arrows of one length, the minimum-loss point and the region of the class.

    From `plain(loss_field(...))`; `path` is `plain(attack_path(...))`.
    """
    require(len(result["centre"]) == 2, "result", "of two dimensions", len(result["centre"]))
    axis, extent = result["axis"], result["axis"][-1]
    figure = new_figure("feature 1", "feature 2")
    bar = {"title": {"text": "loss"}}
    figure.add_heatmap(x=axis, y=axis, z=transposed(result["loss"]), colorscale="Viridis", colorbar=bar)
    own = [[int(label == result["label"]) for label in row] for row in result["classes"]]
    border = {"start": 0.5, "end": 0.5, "size": 1, "coloring": "lines"}
    white = [[0, "white"], [1, "white"]]
    figure.add_contour(x=axis, y=axis, z=transposed(own), contours=border, colorscale=white, showscale=False, hoverinfo="skip")
    length = 1.2 * extent / math.sqrt(len(result["places"]))
    for (x, y), (along, up) in zip(result["places"], result["gradients"], strict=True):
        size = math.hypot(along, up)
        if size > 0:
            tip = {"x": x + length * along / size, "y": y + length * up / size}
            figure.add_annotation(
                **tip, ax=x, ay=y, axref="x", ayref="y", text="", showarrow=True, arrowhead=2, arrowcolor="#ddd"
            )
    centre = {"symbol": "x", "size": 13, "color": "white", "line": {"color": "black", "width": 1}}
    figure.add_scatter(**places([result["centre"]]), mode="markers", marker=centre, name="minimum-loss point")
    for number in range(len(path["labels"]) if path else 0):
        way = [step[number] for step in path["features"]] if path else []
        line = {"color": "orange"}
        figure.add_scatter(**places(way), mode="lines+markers", line=line, name="attack", showlegend=number == 0)
    figure.update_layout(xaxis={"range": [-extent, extent]}, yaxis={"range": [-extent, extent], "scaleanchor": "x"})
    return figure
