"""Figures of spectral complexity: the norms of a model's layers, and the margin term of several models."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Drawing, drawing
from .base import Model, geometry_of, owner


def complexity_drawings(models: Sequence[Model]) -> list[Drawing]:
    """The layers of each model, and the terms beside each other where there are several."""
    from ..plots.margin_term import margin_term_figure
    from ..plots.spectral_complexity import spectral_complexity_figure

    found, terms = [], {}
    for place, model in enumerate(models):
        if norms := geometry_of(model).get("complexity"):
            said = (
                "How much each layer can stretch what enters it (spectral) and how large it is in all (Frobenius), which "
                "R_f is made of; shortcuts and attention are not counted."
            )
            whose = owner(model, models)
            figure = spectral_complexity_figure({**norms, "names": inner_names(norms["names"])})
            found.append(drawing(f"complexity-{place}", f"Norms of the layers{whose}", said, figure))
            if norms["log_term"] is not None:
                terms[model.name] = norms
    if len(terms) > 1:
        said = "The margin term of each model, as a logarithm: smaller is better within one architecture; it is no bound."
        found.append(drawing("margin-term", "Margin term", said, margin_term_figure(terms)))
    return found


def inner_names(names: Sequence[str]) -> list[str]:
    """Names of layers without the part that all begin with: `module.blocks.0` is blocks.0 where all are inside `module`."""
    paths = [name.split(".") for name in names]
    while paths and all(len(path) > 1 and path[0] == paths[0][0] and path[1].isidentifier() for path in paths):
        paths = [path[1:] for path in paths]
    return [".".join(path) for path in paths]
