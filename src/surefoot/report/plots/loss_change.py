"""How much the loss can change within a distance (magnma Theorem 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scatters import diagonal, scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go


def loss_change_figure(result: dict[str, Any]) -> go.Figure:
    """The linear part of Eq. 11 against all of it: how much of the bound is curvature."""
    linear = [result["distance"] * slope for slope in result["gradient_norms"]]
    figure = scatter(linear, result["values"], "distance x gradient norm", f"Eq. 11 at distance {result['distance']:g}")
    diagonal(figure, linear)
    return figure
