"""Figures of what theorems say: certificates, bounds, and terms to compare models by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..figures import Drawing, drawing
from .base import Kind, Model, drawings_of, geometry_of, owner
from .layers import inner_names

if TYPE_CHECKING:
    from plotly import graph_objects as go

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
    from ..plots.bounds import (
        certificates_figure,
        curvature_bounds_figure,
        mapping_bound_figure,
        margin_term_figure,
        spectral_complexity_figure,
    )

    def norms(points: dict[str, Any]) -> go.Figure:
        return spectral_complexity_figure({**points, "names": inner_names(points["names"])})

    found = []
    certified = {model.name: each for model in models if (each := geometry_of(model).get("certificates"))}
    if certified:
        found.append(drawing("certificates", "Certified accuracy", CERTIFIED, certificates_figure(certified)))
    for place, model in enumerate(models):
        if bounds := geometry_of(model).get("eigenvalue_bounds"):
            figure = curvature_bounds_figure(bounds, geometry_of(model).get("curvature"))
            title = f"Bounds on the curvature{owner(model, models)}"
            found.append(drawing(f"eigenvalues-{place}", title, EIGENVALUES, figure))
    kinds = (
        Kind("mapping", "mapping", "Bound on the mapping error", BOUND, mapping_bound_figure),
        Kind("complexity", "complexity", "Norms of the layers", LAYERS, norms),
    )
    found += drawings_of(models, kinds)
    held = {model.name: geometry_of(model).get("complexity") or {} for model in models}
    terms = {name: points for name, points in held.items() if points.get("log_term") is not None}
    if len(terms) > 1:
        found.append(drawing("margin-term", "Margin term", TERMS, margin_term_figure(terms)))
    return found
