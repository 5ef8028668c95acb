"""What each method changes against a baseline, over seeds, and the way of every configuration from one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .base import COLOURS, error_bars, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


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
    for place, (name, first, before, second, after) in enumerate(lines):
        colour = COLOURS[place % len(COLOURS)]
        ends = {"x": [escape(first), escape(second)], "y": [before, after]}
        figure.add_scatter(**ends, mode="lines+markers", name=escape(name), line={"color": colour, "width": 2})
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
