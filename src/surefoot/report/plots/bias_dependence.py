"""Bias of each class and the answers that rest on it (representation-space Fig. 9b, 9c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def bias_dependence_figure(result: dict[str, Any]) -> go.Figure:
    """Two bars for each class, from `plain(bias_dependence(...))`."""
    right = {"overlaying": "y", "side": "right", "range": [0, 1.05], "title": {"text": "answers that change without bias"}}
    figure = new_figure("class", "bias", yaxis2=right, margin={"l": 60, "r": 60, "t": 40, "b": 50}, barmode="group")
    classes = list(range(len(result["bias"])))
    figure.add_bar(x=classes, y=result["bias"], name="bias", marker={"color": COLOURS[0]}, offsetgroup="bias")
    figure.add_bar(x=classes, y=result["values"], name="share", marker={"color": COLOURS[1]}, yaxis="y2", offsetgroup="share")
    return figure
