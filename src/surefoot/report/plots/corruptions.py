"""Accuracy under corruptions, and what each method changes against a baseline."""

from __future__ import annotations

import math
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


Box = tuple[float, float, float, float]
AROUND = ("middle right", "middle left", "top center", "bottom center")


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


def trade_off_figure(methods: Mapping[str, tuple[float, float, float, float]], cost_title: str) -> go.Figure:
    """A point for each method: {name: (cost, accuracy under corruption, ECE under corruption, clean accuracy)}.

    Colour is ECE, size is clean accuracy. The line joins the methods that none beats at the same cost or less.
    """
    figure = new_figure(cost_title, "accuracy under corruption, %", showlegend=False)
    cost, worse, ece, clean = zip(*methods.values(), strict=True)
    room = (max(cost) - min(cost)) / 3 or 1.0  # for the names
    left, right = min(cost) - room, max(cost) + 0.7 * room
    figure.update_xaxes(range=[left, right])
    best, frontier = -math.inf, list[tuple[float, float]]()
    for x, y in sorted(zip(cost, worse, strict=True), key=lambda point: (point[0], -point[1])):
        if y > best:
            best = y
            frontier.append((x, y))
    line = {"color": "#888", "width": 1, "dash": "dot"}
    x, y = ([point[axis] for point in frontier] for axis in (0, 1))
    figure.add_scatter(x=x, y=y, mode="lines", line=line, name="none is cheaper and better", hoverinfo="skip")
    low, high = min(clean), max(clean)
    tall = 1.12 * (max(worse) - min(worse)) or 1.0
    places = [((x - left) / (right - left), (y - min(worse)) / tall) for x, y in zip(cost, worse, strict=True)]
    figure.add_scatter(
        x=cost,
        y=worse,
        mode="markers+text",
        text=[escape(name) for name in methods],
        textposition=free_sides(places, list(methods)),
        customdata=[*zip(ece, clean, strict=True)],
        hovertemplate="%{text}: cost %{x:.2f}, %{y:.1f} %, ECE %{customdata[0]:.1f}, clean %{customdata[1]:.1f}<extra></extra>",
        name="methods",
        marker={
            "color": ece,
            "colorscale": "Viridis",
            "reversescale": True,
            "colorbar": {"title": {"text": "ECE under<br>corruption, %"}},
            "size": [10 + 18 * (value - low) / (high - low) if high > low else 18 for value in clean],
        },
    )
    return figure


def free_sides(points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[str]:
    """The side of each point where its name covers least of the points and of the names before; places are shares of a plot."""
    letter, line, dot = 0.012, 0.045, (0.018, 0.03)  # at the width of a page
    outside = [(-1.0, -1.0, 0.0, 2.0), (1.0, -1.0, 2.0, 2.0)]
    taken = [*outside, *((x - dot[0], y - dot[1], x + dot[0], y + dot[1]) for x, y in points)]
    sides = []
    for (x, y), name in zip(points, names, strict=True):
        half = letter * len(name) / 2
        aside, above = 1.01 * dot[0] + half, 1.01 * dot[1] + line / 2
        centres = ((x + aside, y), (x - aside, y), (x, y + above), (x, y - above))  # as in AROUND
        boxes = [(a - half, b - line / 2, a + half, b + line / 2) for a, b in centres]
        side = min(range(len(AROUND)), key=lambda index: sum(shared(boxes[index], other) for other in taken))
        taken.append(boxes[side])
        sides.append(AROUND[side])
    return sides


def shared(one: Box, other: Box) -> float:
    """The area of both of two rectangles."""
    wide, high = (min(one[end + 2], other[end + 2]) - max(one[end], other[end]) for end in (0, 1))
    return max(0.0, wide) * max(0.0, high)
