"""The norms of the layers behind the spectral complexity (macs Def. 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def spectral_complexity_figure(result: dict[str, Any]) -> go.Figure:
    """Spectral and Frobenius norm of every layer's operator, with log R_f in the title."""
    names = [f"{place}. {escape(name)}" for place, name in enumerate(result["names"], 1)]
    title = f"log R_f = {result['log_complexity']:.4g}"
    figure = new_figure("layer", "norm of the operator", barmode="group", title={"text": title})
    figure.update_layout(yaxis={"type": "log"})
    for name, key, colour in (("spectral", "spectral", COLOURS[0]), ("Frobenius", "frobenius", COLOURS[1])):
        figure.add_bar(x=names, y=result[key], name=name, marker={"color": colour})
    return figure
