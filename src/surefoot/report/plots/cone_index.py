"""When features change class on their way to the origin (representation-space Tab. 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def cone_index_figure(result: dict[str, Any]) -> go.Figure:
    """A histogram of the indices with 20 bins, from `plain(cone_index(...))`; the last one holds full cones."""
    steps = result["steps"]
    counts = [0] * 21
    for value in result["values"]:
        counts[min(int(20 * value / steps), 20)] += 1
    width = steps / 20
    figure = new_figure(f"step of the first change of class, of {steps}", "images")
    figure.add_bar(x=[width * (k + 0.5) for k in range(20)], y=counts[:20], marker={"color": COLOURS[0]}, name="cut")
    figure.add_bar(x=[steps + width], y=counts[20:], marker={"color": COLOURS[2]}, name="full cone")
    return figure
