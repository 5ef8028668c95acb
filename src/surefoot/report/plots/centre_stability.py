"""The minimum-loss point over optimiser settings (representation-space Tab. 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def centre_stability_figure(result: dict[str, Any]) -> go.Figure:
    """Pearson r and the least cosine to the default's centres for each setting, from `plain(centre_stability(...))`."""
    settings = list(zip(result["schedules"], result["learning_rates"], result["steps"], strict=True))
    names = [f"{schedule}, {rate:g}, {steps}" for schedule, rate, steps in settings]
    groups: dict[str, list[str]] = {}
    for (schedule, rate, _), name in zip(settings, names, strict=True):
        groups.setdefault(f"{schedule}<br>{rate:g}", []).append(name)
    figure = new_figure("schedule and learning rate, each with fewer to more steps", "Pearson r, or cosine")
    middles = [each[len(each) // 2] for each in groups.values()]
    figure.update_layout(xaxis={"tickvals": middles, "ticktext": list(groups), "tickangle": 0})
    lowest = min([0.0, *(value for key in ("values", "least_cosine") for value in result[key] if value is not None)])
    figure.update_layout(yaxis={"range": [1.05 * lowest, 1.05]})
    rows = (("values", "r of confidence and cosine"), ("least_cosine", "least cosine to the default's centre"))
    for (key, name), colour in zip(rows, COLOURS, strict=False):
        figure.add_scatter(x=names, y=result[key], mode="markers", name=name, marker={"color": colour, "size": 9})
    return figure
