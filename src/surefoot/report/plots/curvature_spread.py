"""A box plot of the lowest curvatures of several models (discriminative-noise Fig. 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def curvature_spread_figure(results: Mapping[str, dict[str, Any]]) -> go.Figure:
    """A box for each model, by name, from the five numbers of its own `plain(curvature_spread(...))`."""
    share = next(iter(results.values()))["share"]
    figure = new_figure("", f"input-loss curvature, lowest {share:.0%}")
    keys = ("lowerfence", "q1", "median", "q3", "upperfence")
    for (name, result), colour in zip(results.items(), COLOURS * len(results), strict=False):
        five = {key: [value] for key, value in zip(keys, result["values"][0], strict=True)}
        figure.add_box(x=[escape(name)], **five, marker={"color": colour}, showlegend=False)
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
