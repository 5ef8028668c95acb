"""Accuracy as corruptions get worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def severity_figure(lines: Mapping[str, Sequence[tuple[int, float]]]) -> go.Figure:
    """A line for each name through its (severity, accuracy) points; severity 0 is the image as it is."""
    figure = new_figure("severity", "accuracy", xaxis={"dtick": 1}, yaxis={"tickformat": ".0%", "rangemode": "tozero"})
    for (name, row), colour in zip(lines.items(), COLOURS * len(lines), strict=False):
        severities, accuracies = ([point[column] for point in row] for column in (0, 1))
        line = {"color": colour, "width": 2}
        figure.add_scatter(x=severities, y=accuracies, mode="lines+markers", name=escape(name), line=line, showlegend=True)
    return figure
