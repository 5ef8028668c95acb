"""Margins of images, what noise does to them, and how far away another class is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import Numbers, histogram, scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go


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
