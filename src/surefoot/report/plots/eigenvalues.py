"""The largest and smallest eigenvalue of the Hessian at each image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scatters import scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go


def eigenvalues_figure(result: dict[str, Any]) -> go.Figure:
    """The largest against the smallest, a point for each image; the bars are the residuals."""
    figure = scatter(result["smallest"], result["values"], "smallest eigenvalue", "largest eigenvalue")
    figure.update_traces(error_y={"array": result["residuals"], "thickness": 1})
    return figure
