"""How wide each class is and how near to a boundary (discriminative Def. 3.1, 5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def class_shapes_figure(result: dict[str, Any], class_names: list[str] | None = None) -> go.Figure:
    """Dispersion, margin and signed margin of every class as bars; a class without images has none."""
    count = len(result["counts"])
    names = [escape(name) for name in class_names] if class_names else [str(number) for number in range(count)]
    figure = new_figure("class", "distance in feature space", barmode="group", xaxis={"type": "category"})
    rows = (("dispersion", "dispersions"), ("margin", "margins"), ("signed margin", "signed_margins"))
    for (name, key), colour in zip(rows, COLOURS, strict=False):
        figure.add_bar(x=names, y=result[key], name=name, marker={"color": colour})
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
