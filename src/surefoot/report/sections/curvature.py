"""Figures of the loss around images: how sharply it bends, how far it can change, and maps of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..figures import Drawing, drawing
from .base import Kind, Model, drawings_of, geometry_of, owner

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
        trace_figure,
    )
    from ..plots.landscapes import landscape_map_figure, loss_change_figure

    found: list[Drawing] = []
    held = {model.name: each for model in models if "by_count" in (each := geometry_of(model).get("curvature") or {})}
    if held:
        figure = accuracy_by_curvature_figure({name: each["accuracy"] for name, each in held.items()})
        found.append(drawing("accuracy-by-curvature", "Accuracy under noise, by curvature", ACCURACY, figure))
        for place, model in enumerate(models):
            if model.name in held:
                figure = curvature_by_count_figure(held[model.name]["by_count"])
                title = f"Curvature by right predictions{owner(model, models)}"
                found.append(drawing(f"curvature-by-count-{place}", title, COUNTS, figure))
        figure = curvature_spread_figure({name: each["spread"] for name, each in held.items()})
        found.append(drawing("curvature-spread", "Spread of curvature", SPREAD, figure))
        found.append(drawing("curvature", "Distribution of curvature", HISTOGRAM, curvature_figure(bends(models))))
    traces = {model.name: each for model in models if (each := geometry_of(model).get("fisher"))}
    if traces:
        found.append(drawing("fisher", "Distribution of the Fisher trace", TRACES, trace_figure(traces)))
    kinds = (
        Kind("loss_change", "loss-change", "How far the loss can change", CHANGE, loss_change_figure),
        Kind("landscape", "landscape", "The loss around images", MAPS, landscape_map_figure),
    )
    return [*found, *drawings_of(models, kinds)]


def bends(models: Sequence[Model]) -> dict[str, dict[str, Any]]:
    """The curvature of every model, and its Hessian's where that was measured."""
    found: dict[str, dict[str, Any]] = {}
    for model in models:
        points = geometry_of(model)
        if points.get("curvature"):
            found[model.name] = points["curvature"]
        if points.get("hessian"):
            found[f"{model.name}, fewer images"] = points["hessian"]
    return found
