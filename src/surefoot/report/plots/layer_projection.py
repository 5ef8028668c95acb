"""Features of several blocks in two dimensions, clean above noisy (discriminative-noise Fig. 1, 12, 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import escape, new_figure
from .plane import palette, places

if TYPE_CHECKING:
    from plotly import graph_objects as go

LONGEST = 12  # letters of a name


def layer_projection_figure(result: dict[str, Any]) -> go.Figure:
    """A column for each block, clean images above and noisy ones below, from `plain(layer_projection(...))`.

    With `names` of the classes, hovering says them.
    """
    columns = len(result["blocks"])
    colours = palette(max(result["labels"]) + 1)
    shade = [colours[label] for label in result["labels"]]
    known = result.get("names") or [str(label) for label in range(len(colours))]
    text = [escape(known[label]) for label in result["labels"]]
    figure = new_figure("", "", showlegend=False)
    for number, block in enumerate(result["blocks"]):
        for row, kind in enumerate(("noisy", "clean")):
            axis = str(row * columns + number + 1) if row or number else ""
            points: dict[str, Any] = {
                "mode": "markers",
                "marker": {"color": shade, "size": 4},
                "name": f"{escape(block)}, {kind}",
            }
            points |= {"text": text, "hovertemplate": "%{text}<extra></extra>"}
            figure.add_scattergl(**places(result[kind][number]), **points, xaxis=f"x{axis}", yaxis=f"y{axis}")
            bare = {"showticklabels": False, "zeroline": False}
            across = {"domain": [number / columns + 0.01, (number + 1) / columns - 0.01], "anchor": f"y{axis}", **bare}
            along = {"domain": [row / 2 + 0.02, row / 2 + 0.48], "anchor": f"x{axis}", **bare}
            across["title"] = {"text": "" if row else shortened(escape(block))}
            along["title"] = {"text": "" if number else kind}
            figure.update_layout({f"xaxis{axis}": across, f"yaxis{axis}": along})
    return figure


def shortened(name: str) -> str:
    """The end of a name that is too long for its column."""
    return name if len(name) <= LONGEST else f"\N{HORIZONTAL ELLIPSIS}{name[-LONGEST:]}"
