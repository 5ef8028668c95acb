"""Why it is robust or not: numbers and figures of margins, layers, curvature and bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...metrics import facts
from ..figures import Drawing, drawing
from ..words import short, spoken
from .base import Kind, Model, Section, drawings_of, geometry_of, owner
from .features import feature_drawings

if TYPE_CHECKING:
    from plotly import graph_objects as go

# Figures of margins: how far images are from another class, and what a little noise does to that.


LOGITS = (
    "How the margin (right logit minus the best other), the norm of the logits and the largest logit are spread over images: "
    "margins below 0 are wrong, and large logits make confident predictions, right or wrong."
)
RATIO = (
    "Each point is an image: its margin against how far noise moves its logits. Far above the line an image bears more noise "
    "than most, below 0 it is wrong already."
)
MOVED = (
    "Each point is an image: how far noise of {0[std]:g} moves its logits and its probabilities. Points on the right that stay "
    "low are moved but predicted alike."
)
RADII = "How far away another class is from each image, by two estimates: larger is safer, and nothing is certified."
STABILITY = (
    "Each point is an image: how often noise leaves its features within a distance of {0[distance]:g}, and how much the loss "
    "changes where they leave. Right and low is stable."
)
DISTANCES = "How far the features of each image are from the nearest boundary of its class: left of the line is wrong."
SLOPES = (
    "Each point is an image: how steeply its lead over another class falls, and how far away that class is if the slope "
    "stays as it is; up and left is safer, and nothing is certified."
)


def margin_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Up to seven figures for each model that has the points."""
    from ..plots.features import (
        hyperplane_distance_figure,
        local_lipschitz_figure,
        logit_statistics_figure,
        margin_ratio_figure,
        noise_stability_figure,
        radius_estimates_figure,
        sensitivity_figure,
    )

    kinds = (
        Kind("logits", "logits", "Margin and size of the logits", LOGITS, logit_statistics_figure),
        Kind(
            "sensitivity",
            "margin-ratio",
            "Margin and sensitivity",
            RATIO,
            lambda p: margin_ratio_figure({**p, "sensitivities": p["values"]}),
        ),
        Kind("sensitivity", "sensitivity", "What noise moves", MOVED, sensitivity_figure),
        Kind("radii", "radii", "Estimated radius", RADII, radius_estimates_figure),
        Kind("stability", "stability", "Stability of features and loss", STABILITY, noise_stability_figure),
        Kind("hyperplanes", "hyperplanes", "Distance to the boundary", DISTANCES, hyperplane_distance_figure),
        Kind("slopes", "slopes", "Slope and distance to another class", SLOPES, local_lipschitz_figure),
    )
    return drawings_of(models, kinds)


# Figures of layers: where classes begin to come apart, clean and noisy (discriminative-noise Fig. 1, 12, 13, Thm 6.3).


CLASSES = (
    "Images by class (colour) at layers from first to last, clean above and with Gaussian noise of {0[level]:g} below: good "
    "layers keep the clusters apart in both rows. How far apart means nothing in t-SNE."
)
SEPARATION = (
    "How separate pairs of classes are at each layer, estimated from below: at log 2 they do not overlap at all; the other "
    "line is what the last layer forces on those before it, and says nothing at 0."
)


def layer_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Two figures for each model that has the points."""
    from ..plots.layers import layer_projection_figure, separation_by_layer_figure

    kinds = (
        Kind("layers", "layers", "Classes at each layer", CLASSES, with_inner_names(layer_projection_figure)),
        Kind(
            "separation",
            "separation",
            "Separation of classes by layer",
            SEPARATION,
            with_inner_names(separation_by_layer_figure),
        ),
    )
    return drawings_of(models, kinds)


def with_inner_names(draw: Callable[..., go.Figure]) -> Callable[[dict[str, Any]], go.Figure]:
    """The figure with short names of blocks."""
    return lambda points: draw({**points, "blocks": inner_names(points["blocks"])})


def inner_names(names: Sequence[str]) -> list[str]:
    """Names of layers without the part that all begin with: `module.blocks.0` is blocks.0 where all are inside `module`."""
    paths = [name.split(".") for name in names]
    while paths and all(len(path) > 1 and path[0] == paths[0][0] and path[1].isidentifier() for path in paths):
        paths = [path[1:] for path in paths]
    return [".".join(path) for path in paths]


# Figures of the loss around images: how sharply it bends, how far it can change, and maps of it.


SPREAD = "How curvature is spread over the nine tenths of the images with the lowest: the box holds the middle half of them."
ACCURACY = "Accuracy under noise on the images where the loss bends least: a line that falls says that flat images are safer."
COUNTS = (
    "Mean curvature of images by how often they were right in ten noisy draws; it falls to the right where what bends "
    "more is wrong more often."
)
HISTOGRAM = (
    "How many images have which curvature of the loss: to the left is flat, which is robust. From the Hessian itself it is "
    "measured on fewer images, and nets with kinks differ there."
)
TRACES = "How much the prediction depends on small changes of each image: to the left is steadier."
CHANGE = (
    "How much the loss of each image can grow within a distance of {0[distance]:g}, against what its slope alone would say: "
    "height above the dashed line is curvature."
)
MAPS = (
    "The loss around two images (dots), upwards along its gradient and sideways across it: even colours are a smooth loss, in "
    "two directions of thousands."
)


def curvature_drawings(models: Sequence[Model]) -> list[Drawing]:
    """All models in one figure where they can be compared, and maps and groups of each."""
    from ..plots.curvature import (
        accuracy_by_curvature_figure,
        curvature_by_count_figure,
        curvature_figure,
        curvature_spread_figure,
        landscape_map_figure,
        loss_change_figure,
        trace_figure,
    )

    drawings: list[Drawing] = []
    curvatures = {model.name: each for model in models if "by_count" in (each := geometry_of(model).get("curvature") or {})}
    if curvatures:
        figure = accuracy_by_curvature_figure({name: each["accuracy"] for name, each in curvatures.items()})
        drawings.append(drawing("accuracy-by-curvature", "Accuracy under noise, by curvature", ACCURACY, figure))
        for index, model in enumerate(models):
            if model.name in curvatures:
                figure = curvature_by_count_figure(curvatures[model.name]["by_count"])
                title = f"Curvature by right predictions{owner(model, models)}"
                drawings.append(drawing(f"curvature-by-count-{index}", title, COUNTS, figure))
        figure = curvature_spread_figure({name: each["spread"] for name, each in curvatures.items()})
        drawings.append(drawing("curvature-spread", "Spread of curvature", SPREAD, figure))
        drawings.append(drawing("curvature", "Distribution of curvature", HISTOGRAM, curvature_figure(bends(models))))
    traces = {model.name: each for model in models if (each := geometry_of(model).get("fisher"))}
    if traces:
        drawings.append(drawing("fisher", "Distribution of the Fisher trace", TRACES, trace_figure(traces)))
    kinds = (
        Kind("loss_change", "loss-change", "How far the loss can change", CHANGE, loss_change_figure),
        Kind("landscape", "landscape", "The loss around images", MAPS, landscape_map_figure),
    )
    return [*drawings, *drawings_of(models, kinds)]


def bends(models: Sequence[Model]) -> dict[str, dict[str, Any]]:
    """The curvature of every model, and its Hessian's where that was measured."""
    by_model: dict[str, dict[str, Any]] = {}
    for model in models:
        points = geometry_of(model)
        if points.get("curvature"):
            by_model[model.name] = points["curvature"]
        if points.get("hessian"):
            by_model[f"{model.name}, fewer images"] = points["hessian"]
    return by_model


# Figures of what theorems say: certificates, bounds, and terms to compare models by.


CERTIFIED = (
    "Share of the images that the smoothed classifier gets right for certain, whatever changes them by less than the radius: "
    "a line that falls late is good."
)
EIGENVALUES = (
    "Two bounds on how sharply the loss bends and the curvature that was measured; they assume a quadratic loss, which no "
    "network has, and often exclude each other."
)
BOUND = (
    "A bound on the share of class {0[class]} outside a ball around its centre, and the parts it is the sum of: above the line "
    "at 1 it is vacuous, since no share is larger."
)
LAYERS = (
    "How much each layer can stretch what enters it (spectral) and how large it is in all (Frobenius), which R_f is made of; "
    "shortcuts and attention are not counted."
)
TERMS = "The margin term of each model, as a logarithm: smaller is better within one architecture; it is no bound."


def bound_drawings(models: Sequence[Model]) -> list[Drawing]:
    """Certificates and terms of all models in one figure each, and the bounds of each model."""
    from ..plots.curvature import (
        certificates_figure,
        curvature_bounds_figure,
        mapping_bound_figure,
        margin_term_figure,
        spectral_complexity_figure,
    )

    def norms(points: dict[str, Any]) -> go.Figure:
        return spectral_complexity_figure({**points, "names": inner_names(points["names"])})

    drawings = []
    certified = {model.name: each for model in models if (each := geometry_of(model).get("certificates"))}
    if certified:
        drawings.append(drawing("certificates", "Certified accuracy", CERTIFIED, certificates_figure(certified)))
    for index, model in enumerate(models):
        if bounds := geometry_of(model).get("eigenvalue_bounds"):
            figure = curvature_bounds_figure(bounds, geometry_of(model).get("curvature"))
            title = f"Bounds on the curvature{owner(model, models)}"
            drawings.append(drawing(f"eigenvalues-{index}", title, EIGENVALUES, figure))
    kinds = (
        Kind("mapping", "mapping", "Bound on the mapping error", BOUND, mapping_bound_figure),
        Kind("complexity", "complexity", "Norms of the layers", LAYERS, norms),
    )
    drawings += drawings_of(models, kinds)
    by_model = {model.name: geometry_of(model).get("complexity") or {} for model in models}
    terms = {name: points for name, points in by_model.items() if points.get("log_term") is not None}
    if len(terms) > 1:
        drawings.append(drawing("margin-term", "Margin term", TERMS, margin_term_figure(terms)))
    return drawings


# Why it is robust or not: one number for each measurement, and the figures of the papers.


def geometry_section(models: Sequence[Model]) -> Section:
    """A row for each number that any model has, and the figures."""
    numbers = [dict(flat(measured(model))) for model in models]
    paths = list(dict.fromkeys(path for row in numbers for path in row))
    rows = [{**explained(path), "cells": [row.get(path) for row in numbers]} for path in paths]
    notes = [(model.name, note) for model in models for note in model.audit["geometry"].get("notes", ())]
    inside = (*feature_drawings(models), *layer_drawings(models), *margin_drawings(models))
    drawings = (*inside, *curvature_drawings(models), *bound_drawings(models))
    folded = all(model.audit["subject"].get("depth") == "quick" for model in models)  # few images: to look up, not to act on
    values = {"rows": rows, "notes": notes, "models": models, "folded": folded}
    return Section("geometry", "Why: the geometry behind it", values, drawings)


def measured(model: Model) -> dict[str, Any]:
    """All numbers of an audit's geometry by name."""
    numbers = model.audit["geometry"]
    own = {key: value for key, value in numbers.items() if key not in ("measured", "notes") and value is not None}
    return {**own, **(numbers.get("measured") or {})}


def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Every number as text with its interval, by the path of its names."""
    for key, value in values.items():
        path = f"{before}.{key}" if before else key
        if isinstance(value, dict) and "value" in value:
            interval = "" if value.get("low") is None else f"{short(value['low'])} to {short(value['high'])}"
            yield path, {"value": short(value["value"]), "interval": interval}
        elif isinstance(value, dict):
            yield from flat(value, path)
        elif isinstance(value, (int, float)) or value is None:
            yield path, {"value": short(value), "interval": ""}


def explained(path: str) -> dict[str, str]:
    """What a number is called, with the name of the part below it, and one line on what it says."""
    whole, _, part = path.partition(".")
    metric = facts(whole)
    return {"name": f"{metric.label}: {spoken(part)}" if part else metric.label, "meaning": metric.meaning}
