"""Accuracy on each family of corruptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure
from .interval_curves import bars

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
            error_y=bars(numbers),
            name=escape(name),
            marker={"color": colour},
            showlegend=len(models) > 1,
        )
    return figure
