"""Features of several blocks in two dimensions, clean above noisy (discriminative-noise Fig. 1, 12, 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import escape, new_figure
from .plane import palette, places

if TYPE_CHECKING:
    from plotly import graph_objects as go


def layer_projection_figure(result: dict[str, Any]) -> go.Figure:
    """A column for each block, clean images above and noisy ones below, from `plain(layer_projection(...))`."""
    columns = len(result["blocks"])
    colours = palette(max(result["labels"]) + 1)
    shade = [colours[label] for label in result["labels"]]
    figure = new_figure("", "", showlegend=False)
    for number, block in enumerate(result["blocks"]):
        for row, kind in enumerate(("noisy", "clean")):
            axis = str(row * columns + number + 1) if row or number else ""
            marker = {"color": shade, "size": 4}
            figure.add_scattergl(
                **places(result[kind][number]), mode="markers", marker=marker, xaxis=f"x{axis}", yaxis=f"y{axis}", name=kind
            )
            across = [number / columns + 0.02, (number + 1) / columns - 0.02]
            title = {"text": f"{escape(block)}, {kind}"}
            figure.update_layout(
                {
                    f"xaxis{axis}": {"domain": across, "anchor": f"y{axis}", "title": title, "showticklabels": False},
                    f"yaxis{axis}": {"domain": [row / 2 + 0.07, row / 2 + 0.5], "anchor": f"x{axis}", "showticklabels": False},
                }
            )
    return figure
