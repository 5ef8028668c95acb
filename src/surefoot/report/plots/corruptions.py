"""Accuracy under corruptions, and what each method changes against a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .base import COLOURS, error_bars, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

# Accuracy under corruptions, by family and by severity.


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


# What each method changes against a baseline, over seeds, and the way of every configuration from one to the other.


def method_differences_figure(rows: Mapping[str, Mapping[str, Any]], unit: str) -> go.Figure:
    """A point for each method with the interval of its paired difference {value, low, high, within_noise}.

    On the line nothing changes; a hollow point is within noise.
    """
    figure = new_figure(f"difference in {unit}", "", showlegend=False, margin={"l": 140, "r": 20, "t": 20, "b": 50})
    numbers = list(rows.values())
    figure.add_vline(x=0, line={"color": "#888", "width": 1, "dash": "dash"})
    figure.add_scatter(
        x=[number["value"] for number in numbers],
        y=[escape(name) for name in rows],
        error_x=error_bars(numbers),
        mode="markers",
        name="difference",
        marker={
            "color": COLOURS[0],
            "size": 9,
            "symbol": ["circle-open" if number["within_noise"] else "circle" for number in numbers],
        },
    )
    figure.update_yaxes(type="category", autorange="reversed")  # from top to bottom, as in the table
    return figure


def slopes_figure(lines: Sequence[tuple[str, str, float, str, float]], unit: str) -> go.Figure:
    """A line for each configuration, from (baseline, value) to (method, value): macs Fig. 3."""
    figure = new_figure("", unit)
    for index, (name, first, before, second, after) in enumerate(lines):
        colour = COLOURS[index % len(COLOURS)]
        ends = {"x": [escape(first), escape(second)], "y": [before, after]}
        figure.add_scatter(**ends, mode="lines+markers", name=escape(name), line={"color": colour, "width": 2})
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
