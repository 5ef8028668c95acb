"""Certified accuracy against the radius (Cohen et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def certificates_figure(results: dict[str, dict[str, Any]]) -> go.Figure:
    """A falling line for each named result: the share of images right with a certificate of at least the radius."""
    figure = new_figure("radius (L2, pixels in [0, 1])", "certified accuracy")
    figure.update_layout(yaxis={"range": [0, 1.02], "tickformat": ".0%"})
    for (name, result), colour in zip(results.items(), COLOURS * len(results), strict=False):
        count = len(result["labels"])
        rows = zip(result["values"], result["predictions"], result["labels"], strict=True)
        right = sorted(radius for radius, guess, label in rows if guess == label)
        x, y = [0.0, *right], [len(right) / count, *((len(right) - k) / count for k in range(len(right)))]
        x, y = [*x, right[-1] if right else 0.0], [*y, 0.0]
        title = f"{escape(name)}, noise {result['std']:g}"
        figure.add_scatter(x=x, y=y, mode="lines", line={"shape": "vh", "color": colour}, name=title)
    return figure
