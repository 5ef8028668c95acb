"""A linear probe by its regularisation (representation-space Tab. 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def linear_probe_figure(result: dict[str, Any]) -> go.Figure:
    """Validation accuracy for each strength and test accuracy of the chosen one, from `plain(linear_probe(...))`."""
    figure = new_figure("L2 strength", "accuracy", xaxis={"type": "log"}, yaxis={"tickformat": ".0%"})
    line = {"color": COLOURS[0]}
    figure.add_scatter(x=result["strengths"], y=result["values"], mode="lines+markers", name="validation", line=line)
    marker = {"color": COLOURS[1], "size": 13, "symbol": "star"}
    figure.add_scatter(x=[result["strength"]], y=[result["test_accuracy"]], mode="markers", name="test", marker=marker)
    return figure
