"""What theorems say: certificates, bounds, and terms to compare models by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, histogram, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

TICKS = 15  # numbers of layers that have room


def certificates_figure(results: dict[str, dict[str, Any]]) -> go.Figure:
    """A falling line for each result: the share right with a certificate of at least the radius (Cohen et al. 2019)."""
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


def curvature_bounds_figure(result: dict[str, Any], curvature: dict[str, Any] | None = None) -> go.Figure:
    """Both sides of discriminative-noise Thm 6.1 on a logarithmic axis, with the measured curvature where it is given."""
    groups = {"Eq. 16 (lower)": result["lower"], "Eq. 15 (upper)": result["values"]}
    if curvature is not None:
        groups["measured curvature"] = curvature["values"]
    figure = histogram(groups, "sum of squared eigenvalues", logarithmic=True)
    figure.update_layout(meta={"note": result["note"]})
    return figure


def mapping_bound_figure(result: dict[str, Any]) -> go.Figure:
    """A bar for each part of discriminative-noise Thm 6.2, the line at 1 above which it says nothing, and the verdict."""
    figure = new_figure("", "part of the bound", title={"text": result["verdict"]}, showlegend=False)
    parts = ("empirical", "capacity", "confidence", "bound")
    figure.add_bar(x=list(parts), y=[result[part] for part in parts], marker={"color": list(COLOURS[:4])})
    figure.add_hline(y=1, line={"color": "#888", "dash": "dash"})
    return figure


def spectral_complexity_figure(result: dict[str, Any]) -> go.Figure:
    """Spectral and Frobenius norm of every layer by its number, with log R_f below (macs Def. 4.1)."""
    names = [f"{place}. {escape(name)}" for place, name in enumerate(result["names"], 1)]
    logarithm = result["log_complexity"]
    title = "layer" if logarithm is None else f"layer; log R_f = {logarithm:.4g}"
    figure = new_figure(title, "norm of the operator", barmode="group", yaxis={"type": "log", "dtick": 1})
    shown = range(0, len(names), math.ceil(len(names) / TICKS) or 1)
    figure.update_layout(xaxis={"tickvals": [names[k] for k in shown], "ticktext": [str(k + 1) for k in shown], "tickangle": 0})
    for name, key, colour in (("spectral", "spectral", COLOURS[0]), ("Frobenius", "frobenius", COLOURS[1])):
        figure.add_bar(x=names, y=result[key], name=name, marker={"color": colour})
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure


def margin_term_figure(results: dict[str, dict[str, Any]]) -> go.Figure:
    """A bar for the logarithm of each named model's term of macs Thm 4.2: to compare by, not a bound."""
    figure = new_figure("model", "log of R_f B / (gamma sqrt n): a term, not a bound")
    names = [escape(name) for name in results]
    figure.add_bar(x=names, y=[result["log_term"] for result in results.values()], marker={"color": COLOURS[0]})
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
