"""Margin against sensitivity (macs Tab. 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scatters import scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go


def margin_ratio_figure(result: dict[str, Any]) -> go.Figure:
    """A point for each image, with the line of the ratio of the means."""
    figure = scatter(result["sensitivities"], result["margins"], "sensitivity L(x)", "margin")
    ends = [0.0, max(result["sensitivities"])]
    slope = result["ratio_of_means"]
    name = f"ratio of means {slope:.3g}, median {result['median']:.3g}"
    figure.add_scatter(x=ends, y=[slope * end for end in ends], mode="lines", name=name, line={"color": "#888", "dash": "dash"})
    figure.update_layout(title={"text": name})
    return figure
