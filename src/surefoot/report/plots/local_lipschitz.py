"""Slopes of the logit differences at the images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scatters import scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go


def local_lipschitz_figure(result: dict[str, Any]) -> go.Figure:
    """The steepest slope against the first-order radius, a point for each image."""
    figure = scatter(result["values"], result["radii"], "steepest slope", "first-order radius (no certificate)")
    figure.update_layout(meta={"note": result["note"]})
    return figure
