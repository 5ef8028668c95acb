"""How far a representation is from neural collapse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def neural_collapse_figure(result: dict[str, Any]) -> go.Figure:
    """A bar for each measure, from `plain(neural_collapse(...))`; all are 0 where the collapse is complete."""
    figure = new_figure("", "distance from collapse")
    names = [name for name in result if name != "classes"]
    values = [result[name] for name in names]
    figure.add_bar(x=[n.replace("_", " ") for n in names], y=values, marker={"color": COLOURS[0]}, showlegend=False)
    return figure
