"""How well the cosine to each kind of class centre tells the confidence (representation-space Tab. 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def centre_correlation_figure(result: dict[str, Any]) -> go.Figure:
    """A bar for each kind of centre, from `plain(centre_correlations(...))`."""
    figure = new_figure("class centre", "Pearson r of confidence and cosine")
    figure.add_bar(x=result["kinds"], y=result["values"], marker={"color": COLOURS[0]}, showlegend=False)
    return figure
