"""A histogram of a value and the attack's success in each of its bins (representation-space Fig. 3, middle row)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def success_by_bin_figure(result: dict[str, Any], value: str = "cosine to the class centre") -> go.Figure:
    """Counts as bars, success as a line on its own axis, from `plain(success_by_bin(...))`."""
    edges = result["edges"]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    right = {"overlaying": "y", "side": "right", "range": [0, 1.05], "tickformat": ".0%", "title": {"text": "attack success"}}
    figure = new_figure(escape(value), "images", yaxis2=right, margin={"l": 60, "r": 60, "t": 40, "b": 50})
    figure.add_bar(x=middles, y=result["counts"], name="images", marker={"color": COLOURS[5]})
    line = {"color": COLOURS[1], "width": 2}
    figure.add_scatter(x=middles, y=result["values"], mode="lines+markers", name="attack success", yaxis="y2", line=line)
    return figure
