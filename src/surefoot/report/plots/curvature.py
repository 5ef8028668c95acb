"""Curvature of the loss around images, how it is spread, and what it has to do with noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, histogram, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def curvature_figure(results: dict[str, dict[str, Any]]) -> go.Figure:
    """Shares of images by curvature on a logarithmic axis; Eq. 21 and the Hessian's own under their names."""
    groups = {}
    for name, result in results.items():
        how = f"Eq. 21, step {result['step']:g}" if result["step"] else "Hessian"
        groups[f"{name} ({how})"] = result["values"]
    return histogram(groups, "curvature", logarithmic=True)


def accuracy_by_curvature_figure(results: Mapping[str, dict[str, Any]]) -> go.Figure:
    """A line for each model, by name, from `plain(accuracy_by_curvature(...))` (discriminative-noise Fig. 8)."""
    figure = new_figure("share of images with the lowest curvature", "accuracy under noise", xaxis={"tickformat": ".0%"})
    for (name, result), colour in zip(results.items(), COLOURS * len(results), strict=False):
        line = {"color": colour}
        figure.add_scatter(x=result["shares"], y=result["values"], mode="lines+markers", name=escape(name), line=line)
    return figure


def curvature_by_count_figure(result: dict[str, Any]) -> go.Figure:
    """A point for each group that has images, from `plain(curvature_by_count(...))` (discriminative-noise Fig. 9)."""
    figure = new_figure(f"right predictions of {result['draws']}", "mean input-loss curvature")
    r = result["correlation"]
    name = "groups" if r is None else f"r = {r:.2f} over groups"
    marker = {"color": COLOURS[0], "size": 9}
    figure.add_scatter(
        x=list(range(result["draws"] + 1)),
        y=result["values"],
        customdata=result["counts"],
        mode="lines+markers",
        marker=marker,
        name=name,
        showlegend=True,
        hovertemplate="%{x} right<br>curvature %{y:.3g}<br>%{customdata} images",
    )
    return figure


def curvature_spread_figure(results: Mapping[str, dict[str, Any]]) -> go.Figure:
    """A box for each model, by name, from its own `plain(curvature_spread(...))` (discriminative-noise Fig. 10)."""
    share = next(iter(results.values()))["share"]
    figure = new_figure("", f"input-loss curvature, lowest {share:.0%}")
    keys = ("lowerfence", "q1", "median", "q3", "upperfence")
    for (name, result), colour in zip(results.items(), COLOURS * len(results), strict=False):
        five = {key: [value] for key, value in zip(keys, result["values"][0], strict=True)}
        figure.add_box(x=[escape(name)], **five, marker={"color": colour}, showlegend=False)
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure


def trace_figure(results: dict[str, dict[str, Any]]) -> go.Figure:
    """Shares of images by trace of the Fisher information on a logarithmic axis (magnma Eq. 7)."""
    groups = {f"{name} ({result['method']})": result["values"] for name, result in results.items()}
    return histogram(groups, "trace", logarithmic=True)
