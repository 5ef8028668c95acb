"""Numbers of a study's table as bars and curves, and calibration as diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .base import COLOURS, DASHES, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

Bar = tuple[float, float | None]  # mean, and deviation over seeds


def bars_figure(groups: Mapping[str, Mapping[str, Bar]], unit: str) -> go.Figure:
    """A colour for each group and a bar for each of its places, with the deviation over seeds where there is one."""
    figure = new_figure("", unit, barmode="group", showlegend=len(groups) > 1)
    for (name, row), colour in zip(groups.items(), COLOURS * len(groups), strict=False):
        values = list(row.values())
        bars = {"x": [escape(place) for place in row], "y": [mean for mean, _ in values], "marker": {"color": colour}}
        spread = {"array": [deviation for _, deviation in values], "thickness": 1, "width": 3}
        figure.add_bar(**bars, error_y=spread, name=escape(name))
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure


def curves_figure(lines: Mapping[str, Mapping[str, Bar]], unit: str) -> go.Figure:
    """A line for each name through its places, as of a model over methods (macs Fig. 1)."""
    figure = new_figure("", unit)
    for number, (name, row) in enumerate(lines.items()):
        line = {"color": COLOURS[number % len(COLOURS)], "dash": DASHES[number // len(COLOURS) % len(DASHES)], "width": 2}
        means = [mean for mean, _ in row.values()]
        figure.add_scatter(x=[escape(place) for place in row], y=means, mode="lines+markers", name=escape(name), line=line)
    figure.update_layout(showlegend=True)
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure


def reliability_figure(result: dict[str, Any]) -> go.Figure:
    """Accuracy in each bin of confidence, the fainter the fewer images it has (representation-space Fig. 3, bottom row)."""
    share = {"tickformat": ".0%", "range": [0, 1]}
    figure = new_figure("confidence", "accuracy", xaxis=share, yaxis=share, bargap=0, showlegend=False)
    middles = [(low + high) / 2 for low, high in pairwise(result["edges"])]
    most = max(result["share"]) or 1.0
    opacity = [0.15 + 0.85 * part / most if part else 0.0 for part in result["share"]]
    marker = {"color": COLOURS[0], "opacity": opacity}
    label = "confidence %{customdata[0]:.1%}, accuracy %{y:.1%}, %{customdata[1]:.1%} of the images<extra></extra>"
    more: Sequence[Any] = [*zip(result["confidence"], result["share"], strict=True)]
    figure.add_bar(x=middles, y=result["accuracy"], marker=marker, customdata=more, hovertemplate=label, name="accuracy")
    line = {"color": "#888", "dash": "dash", "width": 1}
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, hoverinfo="skip", name="calibrated")
    note = {"xref": "paper", "yref": "paper", "x": 0.05, "y": 0.95, "showarrow": False}
    figure.add_annotation(text=f"ECE {100 * result['ece']:.1f} %", **note)
    return figure
