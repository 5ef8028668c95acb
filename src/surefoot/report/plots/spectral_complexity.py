"""The norms of the layers behind the spectral complexity (macs Def. 4.1)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go

TICKS = 15  # numbers of layers that have room


def spectral_complexity_figure(result: dict[str, Any]) -> go.Figure:
    """Spectral and Frobenius norm of every layer's operator by its number, with log R_f below; hovering gives its name."""
    names = [f"{place}. {escape(name)}" for place, name in enumerate(result["names"], 1)]
    logarithm = result["log_complexity"]
    title = "layer" if logarithm is None else f"layer; log R_f = {logarithm:.4g}"
    figure = new_figure(title, "norm of the operator", barmode="group", yaxis={"type": "log", "dtick": 1})
    shown = range(0, len(names), math.ceil(len(names) / TICKS) or 1)
    figure.update_layout(xaxis={"tickvals": [names[k] for k in shown], "ticktext": [str(k + 1) for k in shown], "tickangle": 0})
    for name, key, colour in (("spectral", "spectral", COLOURS[0]), ("Frobenius", "frobenius", COLOURS[1])):
        figure.add_bar(x=names, y=result[key], name=name, marker={"color": colour})
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
