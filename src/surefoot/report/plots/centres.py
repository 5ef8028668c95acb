"""Centres and shapes of classes in feature space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

T = TypeVar("T")


def centre_correlation_figure(result: dict[str, Any]) -> go.Figure:
    """How well the cosine to each kind of class centre tells the confidence (representation-space Tab. 1)."""
    figure = new_figure("class centre", "Pearson r of confidence and cosine")
    figure.add_bar(x=result["kinds"], y=result["values"], marker={"color": COLOURS[0]}, showlegend=False)
    return figure


def centre_stability_figure(result: dict[str, Any]) -> go.Figure:
    """Pearson r and the least cosine to the default's centres over optimiser settings (representation-space Tab. 9)."""
    settings = list(zip(result["schedules"], result["learning_rates"], result["steps"], strict=True))
    names = [f"{schedule}, {rate:g}, {steps}" for schedule, rate, steps in settings]
    rates: dict[tuple[str, float], list[str]] = {}
    for (schedule, rate, _), name in zip(settings, names, strict=True):
        rates.setdefault((schedule, rate), []).append(name)
    figure = new_figure("learning rate, and schedule", "Pearson r, or cosine")
    figure.update_layout(xaxis={"tickvals": [middle(each) for each in rates.values()], "ticktext": labels(list(rates))})
    lowest = min([0.0, *(value for key in ("values", "least_cosine") for value in result[key] if value is not None)])
    figure.update_layout(yaxis={"range": [1.05 * lowest, 1.05]})
    rows = (("values", "r of confidence and cosine"), ("least_cosine", "least cosine to the default's centre"))
    for (key, name), colour in zip(rows, COLOURS, strict=False):
        figure.add_scatter(x=names, y=result[key], mode="markers", name=name, marker={"color": colour, "size": 9})
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure


def labels(rates: Sequence[tuple[str, float]]) -> list[str]:
    """Each learning rate, and below the middle one of a schedule its name: there is no room for more."""
    middles = [middle([each for each in rates if each[0] == schedule]) for schedule in dict.fromkeys(name for name, _ in rates)]
    return [f"{each[1]:g}<br>{each[0]}" if each in middles else f"{each[1]:g}" for each in rates]


def middle(items: Sequence[T]) -> T:
    return items[len(items) // 2]


def class_shapes_figure(result: dict[str, Any], class_names: list[str] | None = None) -> go.Figure:
    """Dispersion, margin and signed margin of every class with images (discriminative-noise Def. 3.1, 5.1)."""
    count = len(result["counts"])
    names = [escape(name) for name in class_names] if class_names else [str(number) for number in range(count)]
    figure = new_figure("class", "distance in feature space", barmode="group", xaxis={"type": "category"})
    rows = (("dispersion", "dispersions"), ("margin", "margins"), ("signed margin", "signed_margins"))
    for (name, key), colour in zip(rows, COLOURS, strict=False):
        figure.add_bar(x=names, y=result[key], name=name, marker={"color": colour})
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
