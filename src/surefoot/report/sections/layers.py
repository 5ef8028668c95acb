"""Figures of layers: where classes begin to come apart, clean and noisy (discriminative-noise Fig. 1, 12, 13, Thm 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..figures import Drawing
from .base import Kind, Model, drawings_of

if TYPE_CHECKING:
    from plotly import graph_objects as go

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
