"""Accuracy under corruptions, by family and by severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .base import COLOURS, error_bars, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def family_figure(models: Mapping[str, Mapping[str, Any]], measure: str = "accuracy") -> go.Figure:
    """A bar for each family and model, with its 95 % interval, from `corruptions.families` of each."""
    figure = new_figure("family", measure, barmode="group", yaxis={"tickformat": ".0%"})
    for (name, families), colour in zip(models.items(), COLOURS * len(models), strict=False):
        numbers = [family[measure] for family in families.values()]
        figure.add_bar(
            x=[escape(family) for family in families],
            y=[number["value"] for number in numbers],
            error_y=error_bars(numbers),
            name=escape(name),
            marker={"color": colour},
            showlegend=len(models) > 1,
        )
    return figure


def severity_figure(lines: Mapping[str, Sequence[tuple[int, float]]]) -> go.Figure:
    """A line for each name through its (severity, accuracy) points; severity 0 is the image as it is."""
    figure = new_figure("severity", "accuracy", xaxis={"dtick": 1}, yaxis={"tickformat": ".0%", "rangemode": "tozero"})
    for (name, row), colour in zip(lines.items(), COLOURS * len(lines), strict=False):
        severities, accuracies = ([point[column] for point in row] for column in (0, 1))
        line = {"color": colour, "width": 2}
        figure.add_scatter(x=severities, y=accuracies, mode="lines+markers", name=escape(name), line=line, showlegend=True)
    return figure
