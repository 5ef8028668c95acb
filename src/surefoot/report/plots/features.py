"""Features and classes: size, direction and confidence, centres, cones, biases, collapse, margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from .base import COLOURS, Numbers, escape, histogram, new_figure, scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go

# Features: size, direction and confidence, cones, biases, collapse, and what attacks do to them.


SUCCESS_COLOURS = (COLOURS[1], COLOURS[0], *COLOURS[2:5])  # bars have another


def feature_scatter_figure(result: dict[str, Any], confidence: Sequence[float] | None = None) -> go.Figure:
    """RMS against cosine to the class centre, coloured by confidence if given (representation-space Fig. 3, top row)."""
    figure = new_figure("feature RMS", "cosine to the class centre")
    marker: dict[str, Any] = {"size": 4, "opacity": 0.6, "color": COLOURS[0]}
    if confidence is not None:
        scale = {"color": list(confidence), "colorscale": "Viridis", "cmin": 0, "cmax": 1}
        marker |= {**scale, "colorbar": {"title": {"text": "confidence"}}}
    figure.add_scattergl(x=result["rms"], y=result["cosine"], mode="markers", marker=marker, showlegend=False)
    return figure


def success_by_bin_figure(result: dict[str, Any], value: str = "cosine to the class centre") -> go.Figure:
    """Counts as bars, attack success as a line on its own axis (representation-space Fig. 3, middle row).

    From `plain(success_by_bin(...))`, or with `attacks` instead of `values`: the success of each by its name (Fig. 14 to 24).
    """
    edges = result["edges"]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    right = {"overlaying": "y", "side": "right", "range": [0, 1.05], "tickformat": ".0%", "title": {"text": "attack success"}}
    figure = new_figure(escape(value), "images", yaxis2=right, margin={"l": 60, "r": 60, "t": 40, "b": 50})
    figure.add_bar(x=middles, y=result["counts"], name="images", marker={"color": COLOURS[5]})
    lines = result.get("attacks") or {"attack success": result["values"]}
    for number, (name, values) in enumerate(lines.items()):
        line = {"color": SUCCESS_COLOURS[number % len(SUCCESS_COLOURS)], "width": 2}
        figure.add_scatter(x=middles, y=values, mode="lines+markers", name=escape(name), yaxis="y2", line=line)
    return figure


def feature_displacement_figure(result: dict[str, Any]) -> go.Figure:
    """RMS of each change under attack against RMS of the feature, with their mean (representation-space Fig. 7)."""
    figure = new_figure("feature RMS", "perturbation RMS")
    marker = {"size": 4, "opacity": 0.6, "color": COLOURS[0]}
    figure.add_scattergl(x=result["feature_rms"], y=result["values"], mode="markers", marker=marker, name="images")
    mean = {"size": 13, "symbol": "x", "color": COLOURS[1]}
    figure.add_scatter(x=[result["feature_rms_mean"]], y=[result["mean"]], mode="markers", marker=mean, name="mean")
    return figure


def displacements_figure(results: Mapping[str, dict[str, Any]]) -> go.Figure:
    """The same of several models, a colour for each: images as points, means as crosses (representation-space Fig. 7)."""
    figure = new_figure("feature RMS", "perturbation RMS")
    for (name, result), colour in zip(results.items(), COLOURS * len(results), strict=False):
        points = {"x": result["feature_rms"], "y": result["values"], "name": escape(name), "legendgroup": name}
        figure.add_scatter(**points, mode="markers", marker={"size": 4, "opacity": 0.35, "color": colour}, showlegend=False)
        mean = {"size": 13, "symbol": "x", "color": colour, "line": {"color": "black", "width": 1}}
        middle = {"x": [result["feature_rms_mean"]], "y": [result["mean"]], "legendgroup": name}
        figure.add_scatter(**middle, mode="markers", marker=mean, name=escape(name))
    return figure


def cone_index_figure(result: dict[str, Any]) -> go.Figure:
    """When features change class on their way to the origin: 20 bins and full cones (representation-space Tab. 5)."""
    steps = result["steps"]
    counts = [0] * 21
    for value in result["values"]:
        counts[min(int(20 * value / steps), 20)] += 1
    width = steps / 20
    figure = new_figure(f"step of the first change of class, of {steps}", "images")
    figure.add_bar(x=[width * (k + 0.5) for k in range(20)], y=counts[:20], marker={"color": COLOURS[0]}, name="cut")
    figure.add_bar(x=[steps + width], y=counts[20:], marker={"color": COLOURS[2]}, name="full cone")
    return figure


def bias_dependence_figure(result: dict[str, Any]) -> go.Figure:
    """Bias of each class and the predictions that rest on it (representation-space Fig. 9b, 9c)."""
    right = {"overlaying": "y", "side": "right", "range": [0, 1.05], "title": {"text": "predictions that change without bias"}}
    figure = new_figure("class", "bias", yaxis2=right, margin={"l": 60, "r": 60, "t": 40, "b": 50}, barmode="group")
    classes = [escape(name) for name in result.get("names") or map(str, range(len(result["bias"])))]
    figure.add_bar(x=classes, y=result["bias"], name="bias", marker={"color": COLOURS[0]}, offsetgroup="bias")
    figure.add_bar(x=classes, y=result["values"], name="share", marker={"color": COLOURS[1]}, yaxis="y2", offsetgroup="share")
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure


def neural_collapse_figure(result: dict[str, Any]) -> go.Figure:
    """A bar for each measure of `plain(neural_collapse(...))`; all are 0 where the collapse is complete."""
    figure = new_figure("", "distance from collapse")
    names = [name for name in result if name != "classes"]
    values = [result[name] for name in names]
    figure.add_bar(x=[n.replace("_", " ") for n in names], y=values, marker={"color": COLOURS[0]}, showlegend=False)
    return figure


# Centres and shapes of classes in feature space.


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


# Margins of images, what noise does to them, and how far away another class is.


def logit_statistics_figure(result: dict[str, Any]) -> go.Figure:
    """Margin, norm and largest logit as three distributions, each named with its mean (macs Tab. 6)."""
    names = {"margin": ("values", "mean_margin"), "norm": ("norms", "mean_norm"), "largest": ("largest", "mean_largest")}
    return histogram({f"{name}, mean {result[mean]:.3g}": result[key] for name, (key, mean) in names.items()}, "logits")


def margin_ratio_figure(result: dict[str, Any]) -> go.Figure:
    """Margin against sensitivity, a point for each image, with the line of the ratio of the means (macs Tab. 10)."""
    figure = scatter(result["sensitivities"], result["margins"], "sensitivity L(x)", "margin")
    ends = [0.0, max(result["sensitivities"])]
    slope = result["ratio_of_means"]
    name = f"ratio of means {slope:.3g}, median {result['median']:.3g}"
    figure.add_scatter(x=ends, y=[slope * end for end in ends], mode="lines", name=name, line={"color": "#888", "dash": "dash"})
    figure.update_layout(title={"text": name})
    return figure


def sensitivity_figure(result: dict[str, Any]) -> go.Figure:
    """L(x) against S(x), how far noise moves logits and probabilities of each image (macs Def. 4.3)."""
    title = f"S(x): mean change of the probabilities, noise {result['std']:g}"
    return scatter(result["values"], result["probability_change"], "L(x): logit change for each unit of noise", title)


def noise_stability_figure(result: dict[str, Any]) -> go.Figure:
    """eta against |l_out - l(x)| of each image whose features ever left the ball (discriminative-noise Def. 6.1)."""
    pairs = zip(result["outside_losses"], result["clean_losses"], strict=True)
    changes = [None if out is None else abs(out - clean) for out, clean in pairs]
    title = f"eta: share of draws within {result['distance']:g}"
    return scatter(result["values"], changes, title, "|l_out - l(x)|")


def hyperplane_distance_figure(distances: Numbers) -> go.Figure:
    """Shares of images by signed distance to the nearest hyperplane; negative is the wrong side."""
    figure = histogram({"images": distances}, "signed distance to the nearest hyperplane")
    figure.add_vline(x=0, line={"color": "#888", "dash": "dash"})
    return figure


def local_lipschitz_figure(result: dict[str, Any]) -> go.Figure:
    """The steepest slope of the logit differences against the first-order radius, a point for each image."""
    figure = scatter(result["values"], result["radii"], "steepest slope", "first-order radius (no certificate)")
    figure.update_layout(meta={"note": result["note"]})
    return figure


def radius_estimates_figure(result: dict[str, Any]) -> go.Figure:
    """Shares of images by the radii of macs Thm 4.5 and Cor. 4.6, which are estimates and no certificates."""
    figure = histogram({"Thm 4.5": result["values"], "Cor. 4.6": result["logit_radii"]}, "estimated radius (no certificate)")
    figure.update_layout(meta={"note": result["note"]})
    return figure
