"""Features: size, direction and confidence, cones, biases, collapse, and what attacks do to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


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
    """Counts as bars, attack success as a line on its own axis (representation-space Fig. 3, middle row)."""
    edges = result["edges"]
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    right = {"overlaying": "y", "side": "right", "range": [0, 1.05], "tickformat": ".0%", "title": {"text": "attack success"}}
    figure = new_figure(escape(value), "images", yaxis2=right, margin={"l": 60, "r": 60, "t": 40, "b": 50})
    figure.add_bar(x=middles, y=result["counts"], name="images", marker={"color": COLOURS[5]})
    line = {"color": COLOURS[1], "width": 2}
    figure.add_scatter(x=middles, y=result["values"], mode="lines+markers", name="attack success", yaxis="y2", line=line)
    return figure


def feature_displacement_figure(result: dict[str, Any]) -> go.Figure:
    """RMS of each change under attack against RMS of the feature, with their mean (representation-space Fig. 7)."""
    figure = new_figure("feature RMS", "perturbation RMS")
    marker = {"size": 4, "opacity": 0.6, "color": COLOURS[0]}
    figure.add_scattergl(x=result["feature_rms"], y=result["values"], mode="markers", marker=marker, name="images")
    mean = {"size": 13, "symbol": "x", "color": COLOURS[1]}
    figure.add_scatter(x=[result["feature_rms_mean"]], y=[result["mean"]], mode="markers", marker=mean, name="mean")
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
