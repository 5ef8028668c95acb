"""The eigenvalues of the input Fisher information."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def fisher_spectrum_figure(result: dict[str, Any]) -> go.Figure:
    """A box over images for each eigenvalue, the largest first, on a logarithmic axis."""
    figure = new_figure("eigenvalue, by size", "value", showlegend=False)
    figure.update_layout(yaxis={"type": "log"})
    for place, column in enumerate(zip(*result["eigenvalues"], strict=True), 1):
        positive = [value for value in column if value > 0]
        figure.add_box(y=positive, name=str(place), marker={"color": COLOURS[0]})
    return figure
