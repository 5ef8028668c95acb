"""The margin term of macs Thm 4.2 for several models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, escape, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def margin_term_figure(results: dict[str, dict[str, Any]]) -> go.Figure:
    """A bar for the logarithm of each named model's term: to compare by, not a bound."""
    figure = new_figure("model", "log of R_f B / (gamma sqrt n): a term, not a bound")
    names = [escape(name) for name in results]
    figure.add_bar(x=names, y=[result["log_term"] for result in results.values()], marker={"color": COLOURS[0]})
    figure.update_xaxes(type="category")  # names, even where they are numbers
    return figure
