"""A box plot of the lowest curvatures of several models (discriminative-noise Fig. 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def curvature_spread_figure(result: dict[str, Any]) -> go.Figure:
    """A box for each model from its five numbers, from `plain(curvature_spread(...))`."""
    figure = new_figure("", f"input-loss curvature, lowest {result['share']:.0%}")
    keys = ("lowerfence", "q1", "median", "q3", "upperfence")
    for name, row, colour in zip(result["names"], result["values"], COLOURS * len(result["names"]), strict=False):
        five = {key: [value] for key, value in zip(keys, row, strict=True)}
        figure.add_box(x=[escape(name)], **five, marker={"color": colour}, showlegend=False)
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
