"""Accuracy under noise of the images with the lowest curvature (discriminative-noise Fig. 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def accuracy_by_curvature_figure(results: Mapping[str, dict[str, Any]]) -> go.Figure:
    """A line for each model, by name, from `plain(accuracy_by_curvature(...))`."""
    figure = new_figure("share of images with the lowest curvature", "accuracy under noise", xaxis={"tickformat": ".0%"})
    for (name, result), colour in zip(results.items(), COLOURS * len(results), strict=False):
        line = {"color": colour}
        figure.add_scatter(x=result["shares"], y=result["values"], mode="lines+markers", name=escape(name), line=line)
    return figure
