"""How far an attack moves features, against their size (representation-space Fig. 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def feature_displacement_figure(result: dict[str, Any]) -> go.Figure:
    """RMS of each change against RMS of the feature, with their mean, from `plain(feature_displacement(...))`."""
    figure = new_figure("feature RMS", "perturbation RMS")
    marker = {"size": 4, "opacity": 0.6, "color": COLOURS[0]}
    figure.add_scattergl(x=result["feature_rms"], y=result["values"], mode="markers", marker=marker, name="images")
    mean = {"size": 13, "symbol": "x", "color": COLOURS[1]}
    figure.add_scatter(x=[result["feature_rms_mean"]], y=[result["mean"]], mode="markers", marker=mean, name="mean")
    return figure
