"""How far features are from the nearest decision hyperplane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .histograms import Numbers, bars

if TYPE_CHECKING:
    from plotly import graph_objects as go


def hyperplane_distance_figure(distances: Numbers) -> go.Figure:
    """Shares of images by signed distance; negative is the wrong side."""
    figure = bars(distances, "signed distance to the nearest hyperplane")
    figure.add_vline(x=0, line={"color": "#888", "dash": "dash"})
    return figure
