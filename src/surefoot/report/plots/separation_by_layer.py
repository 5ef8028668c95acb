"""How separate classes are at each layer, beside the bound (discriminative-noise Thm 6.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

LARGEST = 0.6931471805599453  # log 2, the most that the divergence can be


def separation_by_layer_figure(result: dict[str, Any]) -> go.Figure:
    """The mean over pairs of classes as a line, each pair as a point, the bound and log 2 as lines.

    `values` is blocks x pairs, `pairs` are names of classes, `bound` and `tau` are those of `ClassSeparation`.
    """
    figure = new_figure("layer", "Jensen-Shannon divergence, nats", yaxis={"rangemode": "tozero"})
    blocks = [escape(name) for name in result["blocks"]]
    means = [sum(row) / len(row) for row in result["values"]]
    figure.add_scatter(x=blocks, y=means, mode="lines+markers", name="mean of the pairs", line={"color": COLOURS[0]})
    names = [escape(f"{first} and {second}") for first, second in result["pairs"]]
    figure.add_scatter(
        x=[block for block in blocks for _ in names],
        y=[value for row in result["values"] for value in row],
        text=names * len(blocks),
        mode="markers",
        name="a pair of classes",
        marker={"color": COLOURS[1], "size": 5, "opacity": 0.6},
        hovertemplate="%{text}: %{y:.3g}<extra></extra>",
    )
    figure.add_hline(y=result["bound"], line={"color": COLOURS[2]}, annotation_text=f"bound, tau {result['tau']:.3g}")
    figure.add_hline(y=LARGEST, line={"color": "#888", "dash": "dash"}, annotation_text="log 2")
    return figure
