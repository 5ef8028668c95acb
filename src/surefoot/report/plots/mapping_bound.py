"""The parts of the mapping bound (discriminative Thm 6.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def mapping_bound_figure(result: dict[str, Any]) -> go.Figure:
    """A bar for each part, the line at 1 above which a bound on a probability says nothing, and the verdict."""
    figure = new_figure("", "part of the bound", title={"text": result["verdict"]}, showlegend=False)
    parts = ("empirical", "capacity", "confidence", "bound")
    figure.add_bar(x=list(parts), y=[result[part] for part in parts], marker={"color": list(COLOURS[:4])})
    figure.add_hline(y=1, line={"color": "#888", "dash": "dash"})
    return figure
