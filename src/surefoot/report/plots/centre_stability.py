"""The minimum-loss point over optimiser settings (representation-space Tab. 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def centre_stability_figure(result: dict[str, Any]) -> go.Figure:
    """Pearson r and the least cosine to the default's centres for each setting, from `plain(centre_stability(...))`."""
    figure = new_figure("setting", "Pearson r, or cosine", yaxis={"range": [-1.05, 1.05]})
    settings = zip(result["schedules"], result["learning_rates"], result["steps"], strict=True)
    names = [f"{schedule}, {rate:g}, {steps}" for schedule, rate, steps in settings]
    rows = (("values", "r of confidence and cosine"), ("least_cosine", "least cosine to the default's centre"))
    for (key, name), colour in zip(rows, COLOURS, strict=False):
        figure.add_scatter(x=names, y=result[key], mode="markers", name=name, marker={"color": colour, "size": 9})
    return figure
