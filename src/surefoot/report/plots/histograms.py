"""Histograms of one number for each image, which most measurements give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

Numbers = Sequence[float | None]


def histogram(groups: Mapping[str, Numbers], x: str, *, logarithmic: bool = False, bins: int = 40) -> go.Figure:
    """Shares of images by value, a colour for each group; a logarithmic axis counts what it cannot show."""
    kept = {name: [v for v in values if v is not None and (v > 0 or not logarithmic)] for name, values in groups.items()}
    shown = {name: [math.log10(v) for v in values] if logarithmic else values for name, values in kept.items()}
    figure = new_figure(f"log10 of {x}" if logarithmic else x, "share of the images", barmode="overlay")
    every = [value for values in shown.values() for value in values]
    low, high = (min(every), max(every)) if every else (0.0, 1.0)
    width = (high - low) / bins or 1.0
    for (name, values), colour in zip(shown.items(), COLOURS * len(shown), strict=False):
        left_out = len(groups[name]) - len(values)
        figure.add_histogram(
            x=values,
            name=escape(name) + (f" ({left_out} left out)" if left_out else ""),
            histnorm="probability",
            xbins={"start": low, "end": high + width, "size": width},
            marker={"color": colour},
            opacity=0.65,
            hovertemplate="%{x}: %{y:.1%}",
        )
    return figure


def bars(values: Numbers, x: str, bins: int = 40) -> go.Figure:
    """Shares of images by value, counted here, so that the page's table has the numbers that are drawn."""
    held = [value for value in values if value is not None]
    low, high = (min(held), max(held)) if held else (0.0, 1.0)
    width = (high - low) / bins or 1.0
    counts = [0] * bins
    for value in held:
        counts[min(int((value - low) / width), bins - 1)] += 1
    figure = new_figure(x, "share of the images", bargap=0, showlegend=False)
    middles = [low + (place + 0.5) * width for place in range(bins)]
    shares = [count / len(held) if held else 0.0 for count in counts]
    figure.add_bar(x=middles, y=shares, marker={"color": COLOURS[0]}, opacity=0.8, hovertemplate="%{x:.3g}: %{y:.1%}")
    return figure
