"""Size, direction and confidence of features (representation-space Fig. 3, top row)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def feature_scatter_figure(result: dict[str, Any], confidence: Sequence[float] | None = None) -> go.Figure:
    """RMS against cosine to the class centre, coloured by confidence if given, from `plain(feature_statistics(...))`."""
    figure = new_figure("feature RMS", "cosine to the class centre")
    marker: dict[str, Any] = {"size": 4, "opacity": 0.6, "color": COLOURS[0]}
    if confidence is not None:
        scale = {"color": list(confidence), "colorscale": "Viridis", "cmin": 0, "cmax": 1}
        marker |= {**scale, "colorbar": {"title": {"text": "confidence"}}}
    figure.add_scattergl(x=result["rms"], y=result["cosine"], mode="markers", marker=marker, showlegend=False)
    return figure
