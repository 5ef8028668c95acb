"""The loss around images: curvature, landscapes, and what theorems say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .base import COLOURS, diagonal, escape, histogram, new_figure, scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go

# Curvature of the loss around images, how it is spread, and what it has to do with noise.


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


# How far the loss can change around an image, and maps of it.


def landscape_map_figure(result: dict[str, Any], ends: tuple[float, float] | None = None) -> go.Figure:
    """The loss of each image as a map with one scale of colours, from `ends` if given (discriminative-noise Fig. 11).

    From `plain(loss_landscape(...))` with the `names` of the images and whether the prediction is `right`.
    """
    offsets, count = result["offsets"], len(result["loss"])
    figure = new_figure("", "", showlegend=False)
    every = [value for image in result["loss"] for row in image for value in row if value is not None]
    low, high = ends or (min(every), max(every))
    limits = {"zmin": low, "zmax": high}
    for number, (heights, name, right) in enumerate(zip(result["loss"], result["names"], result["right"], strict=True)):
        axis = str(number + 1) if number else ""
        axes = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        shown = {"colorscale": "Viridis", "showscale": number == count - 1, "colorbar": {"title": {"text": "loss"}}}
        # rows of z are y: the gradient's direction
        figure.add_heatmap(x=offsets, y=offsets, z=heights, name=escape(name), **limits, **shown, **axes)
        dot = {"color": "white", "size": 8, "line": {"color": "black", "width": 1}}
        figure.add_scatter(x=[0], y=[0], mode="markers", marker=dot, hoverinfo="skip", **axes)
        title = f"{escape(name)},<br>{'right' if right else 'wrong'}"
        across = {
            "domain": [number / count, (number + 0.88) / count],
            "anchor": f"y{axis}",
            "title": {"text": title},
            "nticks": 4,
        }
        along = {"anchor": f"x{axis}", "showticklabels": number == 0, "title": {"text": "" if number else "along the gradient"}}
        figure.update_layout({f"xaxis{axis}": across, f"yaxis{axis}": along})
    return figure


def loss_change_figure(result: dict[str, Any]) -> go.Figure:
    """The linear part of magnma Eq. 11 against all of it: how much of the bound is curvature."""
    linear = [result["distance"] * slope for slope in result["gradient_norms"]]
    figure = scatter(linear, result["values"], "distance x gradient norm", f"Eq. 11 at distance {result['distance']:g}")
    diagonal(figure, linear)
    return figure


# What theorems say: certificates, bounds, and terms to compare models by.


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
    names = [f"{number}. {escape(name)}" for number, name in enumerate(result["names"], 1)]
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
