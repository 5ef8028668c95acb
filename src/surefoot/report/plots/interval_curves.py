"""Lines of numbers that carry their intervals: noise curves and security curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

Point = tuple[float, Mapping[str, Any]]  # where, and {value, low, high}
DASHES = ("solid", "dash", "dot", "dashdot")


def interval_figure(groups: Sequence[Mapping[str, Sequence[Point]]], x: str, y: str) -> go.Figure:
    """A colour for each group and a dash for each of its lines, with bars for the 95 % intervals."""
    figure = new_figure(x, y, yaxis={"tickformat": ".0%", "range": [-0.02, 1.04]})
    for group, colour in zip(groups, COLOURS * len(groups), strict=False):
        for (name, row), dash in zip(group.items(), DASHES * len(group), strict=False):
            numbers = [number for _, number in row]
            figure.add_scatter(
                x=[place for place, _ in row],
                y=[number["value"] for number in numbers],
                error_y=bars(numbers),
                mode="lines+markers",
                name=escape(name),
                showlegend=True,
                line={"color": colour, "width": 2, "dash": dash},
            )
    return figure


def apart(groups: Sequence[Mapping[str, Sequence[Point]]]) -> Sequence[Mapping[str, Sequence[Point]]]:
    """A single group as one group for each of its lines, so that each has its own colour."""
    return groups if len(groups) > 1 else [{name: row} for group in groups for name, row in group.items()]


def bars(numbers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Error bars from each value to the ends of its interval; none where there is no interval."""
    above = [max(0.0, number["high"] - number["value"]) if held(number) else None for number in numbers]
    below = [max(0.0, number["value"] - number["low"]) if held(number) else None for number in numbers]
    return {"array": above, "arrayminus": below, "thickness": 1, "width": 3}


def held(number: Mapping[str, Any]) -> bool:
    return all(number.get(key) is not None for key in ("value", "low", "high"))
