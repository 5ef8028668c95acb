"""Estimated divergences of classes at a layer against the bound (discriminative Thm 6.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def class_separation_figure(result: dict[str, Any]) -> go.Figure:
    """A bar for each pair of classes, the bound and log 2, the most that a divergence can be, as lines."""
    figure = new_figure("pair of classes", "Jensen-Shannon divergence, nats", showlegend=False)
    names = [f"{first} and {second}" for first, second in result["pairs"]]
    figure.add_bar(x=names, y=result["values"], marker={"color": COLOURS[0]})
    figure.add_hline(y=result["bound"], line={"color": COLOURS[1]}, annotation_text=f"bound, tau {result['tau']:.3g}")
    figure.add_hline(y=0.6931471805599453, line={"color": "#888", "dash": "dash"}, annotation_text="log 2")
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
