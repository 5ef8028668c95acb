"""What every figure shares: colours, escaping, axes that follow the page, histograms, scatters, curves with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly import graph_objects as go

COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
)  # Okabe and Ito: safe for colour-blind eyes
Numbers = Sequence[float | None]
MARKER = {"color": COLOURS[0], "size": 6, "opacity": 0.6}
Point = tuple[float, Mapping[str, Any]]  # where, and {value, low, high}
DASHES = ("solid", "dash", "dot", "dashdot")


def new_figure(x: str, y: str, **layout: Any) -> go.Figure:
    """An empty figure with these axis titles, transparent so that light and dark pages both suit it."""
    from plotly import graph_objects as go

    usual = {
        "xaxis": {"title": {"text": x}},
        "yaxis": {"title": {"text": y}},
        "legend": {"orientation": "h", "y": 1.12},
        "margin": {"l": 60, "r": 20, "t": 40, "b": 50},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "template": "none",
    }
    figure = go.Figure(layout=usual)  # given at once: plotly copies its large template into a figure that has none yet
    figure.update_layout(**layout)
    return figure


def escape(text: str) -> str:
    """Plotly reads a few HTML tags in its labels; a name is never one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def histogram(groups: Mapping[str, Numbers], x: str, *, logarithmic: bool = False, bins: int = 40) -> go.Figure:
    """Shares of images by value, a colour for each group; a logarithmic axis says how many it cannot show.

    Counted here, so that the page's table has the numbers that are drawn.
    """
    kept = {name: [v for v in values if v is not None and (v > 0 or not logarithmic)] for name, values in groups.items()}
    shown = {name: [math.log10(v) for v in values] if logarithmic else values for name, values in kept.items()}
    every = [value for values in shown.values() for value in values]
    low, high = (min(every), max(every)) if every else (0.0, 1.0)
    width = (high - low) / bins or 1.0
    middles = [low + (index + 0.5) * width for index in range(bins)]
    figure = new_figure(f"log10 of {x}" if logarithmic else x, "share of the images", barmode="overlay", bargap=0)
    figure.update_layout(showlegend=len(groups) > 1)
    for (name, values), colour in zip(shown.items(), COLOURS * len(shown), strict=False):
        counts = [0] * bins
        for value in values:
            counts[min(int((value - low) / width), bins - 1)] += 1
        left_out = len(groups[name]) - len(values)
        figure.add_bar(
            x=middles,
            y=[count / len(values) if values else 0.0 for count in counts],
            name=escape(name) + (f" ({left_out} left out)" if left_out else ""),
            marker={"color": colour},
            opacity=0.65,
            hovertemplate="%{x:.3g}: %{y:.1%}",
        )
    return figure


def scatter(x: Sequence[Any], y: Sequence[Any], x_title: str, y_title: str, **layout: Any) -> go.Figure:
    """A point for each image that has both numbers; hovering gives its index in the batch."""
    figure = new_figure(x_title, y_title, showlegend=False, **layout)
    rows = [(a, b, k) for k, (a, b) in enumerate(zip(x, y, strict=True)) if a is not None and b is not None]
    first, second, indices = ([row[column] for row in rows] for column in range(3))
    label = "image %{customdata}<br>%{x:.4g}, %{y:.4g}<extra></extra>"
    figure.add_scatter(x=first, y=second, customdata=indices, mode="markers", marker=MARKER, hovertemplate=label)
    return figure


def diagonal(figure: go.Figure, values: Sequence[Any]) -> None:
    """The line where both numbers are the same."""
    known = [value for value in values if value is not None]
    if known:
        ends = [min(known), max(known)]
        figure.add_scatter(x=ends, y=ends, mode="lines", line={"color": "#888", "dash": "dash", "width": 1}, hoverinfo="skip")


def interval_figure(groups: Sequence[Mapping[str, Sequence[Point]]], x: str, y: str) -> go.Figure:
    """A colour for each group and a dash for each of its lines, with bars for the 95 % intervals."""
    figure = new_figure(x, y, yaxis={"tickformat": ".0%", "range": [-0.02, 1.04]})
    for group, colour in zip(groups, COLOURS * len(groups), strict=False):
        for (name, row), dash in zip(group.items(), DASHES * len(group), strict=False):
            numbers = [number for _, number in row]
            figure.add_scatter(
                x=[position for position, _ in row],
                y=[number["value"] for number in numbers],
                error_y=error_bars(numbers),
                mode="lines+markers",
                name=escape(name),
                showlegend=True,
                line={"color": colour, "width": 2, "dash": dash},
            )
    return figure


def apart(groups: Sequence[Mapping[str, Sequence[Point]]]) -> Sequence[Mapping[str, Sequence[Point]]]:
    """A single group as one group for each of its lines, so that each has its own colour."""
    return groups if len(groups) > 1 else [{name: row} for group in groups for name, row in group.items()]


def error_bars(numbers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Error bars from each value to the ends of its interval; none where there is no interval."""
    above = [max(0.0, number["high"] - number["value"]) if has_interval(number) else None for number in numbers]
    below = [max(0.0, number["value"] - number["low"]) if has_interval(number) else None for number in numbers]
    return {"array": above, "arrayminus": below, "thickness": 1, "width": 3}


def has_interval(number: Mapping[str, Any]) -> bool:
    return all(number.get(key) is not None for key in ("value", "low", "high"))


def palette(count: int) -> list[str]:
    """As many hues as there are classes."""
    return [f"hsl({360 * k / count:.0f}, 65%, {45 + 12 * (k % 2)}%)" for k in range(count)]


def coordinates(points: Sequence[Sequence[float | None]]) -> dict[str, list[float | None]]:
    """Points as lists of coordinates."""
    return {name: list(column) for name, column in zip("xyz", zip(*points, strict=True), strict=False)}


def transposed(grid: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Plotly's rows are the second coordinate; the grid's are the first."""
    return [list(row) for row in zip(*grid, strict=True)]


def confusion_figure(matrix: Sequence[Sequence[int]], names: Sequence[str]) -> go.Figure:
    """Shares of each class's images by the answer they got; empty classes have none."""
    shares = [[count / sum(row) if sum(row) else 0.0 for count in row] for row in matrix]
    labels = [f"{number} {escape(name)}" if names.count(name) > 1 else escape(name) for number, name in enumerate(names)]
    figure = new_figure("answer", "class", height=max(320, 110 + 26 * len(names)))
    figure.add_heatmap(
        x=labels,
        y=labels,
        z=shares,
        zmin=0,
        zmax=1,
        colorscale=[[0, "rgba(0,114,178,0)"], [0.02, "rgba(0,114,178,0.12)"], [1, COLOURS[0]]],
        hovertemplate="%{y} taken for %{x}: %{z:.1%}<extra></extra>",
        showscale=False,
    )
    figure.update_yaxes(autorange="reversed", type="category", automargin=True, showgrid=False)
    figure.update_xaxes(type="category", automargin=True, showgrid=False)
    return figure
