"""One number of each image against another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

MARKER = {"color": COLOURS[0], "size": 6, "opacity": 0.6}


def scatter(x: Sequence[Any], y: Sequence[Any], x_title: str, y_title: str, **layout: Any) -> go.Figure:
    """A point for each image that has both numbers; hovering gives its place in the batch."""
    figure = new_figure(x_title, y_title, showlegend=False, **layout)
    held = [(a, b, k) for k, (a, b) in enumerate(zip(x, y, strict=True)) if a is not None and b is not None]
    first, second, places = ([row[column] for row in held] for column in range(3))
    label = "image %{customdata}<br>%{x:.4g}, %{y:.4g}<extra></extra>"
    figure.add_scatter(x=first, y=second, customdata=places, mode="markers", marker=MARKER, hovertemplate=label)
    return figure


def diagonal(figure: go.Figure, values: Sequence[Any]) -> None:
    """The line where both numbers are the same."""
    held = [value for value in values if value is not None]
    if held:
        ends = [min(held), max(held)]
        figure.add_scatter(x=ends, y=ends, mode="lines", line={"color": "#888", "dash": "dash", "width": 1}, hoverinfo="skip")
