"""Figures of spectral complexity: the norms of a model's layers, and the margin term of several models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..figures import Drawing, drawing
from .base import Kind, Model, drawings_of, geometry_of

if TYPE_CHECKING:
    from plotly import graph_objects as go


LAYERS = (
    "How much each layer can stretch what enters it (spectral) and how large it is in all (Frobenius), which R_f is made of; "
    "shortcuts and attention are not counted."
)
TERMS = "The margin term of each model, as a logarithm: smaller is better within one architecture; it is no bound."


def complexity_drawings(models: Sequence[Model]) -> list[Drawing]:
    """The layers of each model, and the terms beside each other where there are several."""
    from ..plots.margin_term import margin_term_figure
    from ..plots.spectral_complexity import spectral_complexity_figure

    def norms(points: dict[str, Any]) -> go.Figure:
        return spectral_complexity_figure({**points, "names": inner_names(points["names"])})

    found = drawings_of(models, [Kind("complexity", "complexity", "Norms of the layers", LAYERS, norms)])
    held = {model.name: geometry_of(model).get("complexity") or {} for model in models}
    terms = {name: points for name, points in held.items() if points.get("log_term") is not None}
    if len(terms) > 1:
        found.append(drawing("margin-term", "Margin term", TERMS, margin_term_figure(terms)))
    return found


def inner_names(names: Sequence[str]) -> list[str]:
    """Names of layers without the part that all begin with: `module.blocks.0` is blocks.0 where all are inside `module`."""
    paths = [name.split(".") for name in names]
    while paths and all(len(path) > 1 and path[0] == paths[0][0] and path[1].isidentifier() for path in paths):
        paths = [path[1:] for path in paths]
    return [".".join(path) for path in paths]
