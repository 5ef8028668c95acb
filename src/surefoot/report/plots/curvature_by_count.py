"""Mean curvature by the number of right answers under noise (discriminative-noise Fig. 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLOURS, new_figure

if TYPE_CHECKING:
    from plotly import graph_objects as go


def curvature_by_count_figure(result: dict[str, Any]) -> go.Figure:
    """A point for each group that has images, with Pearson r, from `plain(curvature_by_count(...))`."""
    figure = new_figure(f"right answers of {result['draws']}", "mean input-loss curvature")
    r = result["correlation"]
    name = "groups" if r is None else f"r = {r:.2f} over groups"
    marker = {"color": COLOURS[0], "size": 9}
    figure.add_scatter(
        x=list(range(result["draws"] + 1)),
        y=result["values"],
        customdata=result["counts"],
        mode="lines+markers",
        marker=marker,
        name=name,
        showlegend=True,
        hovertemplate="%{x} right<br>curvature %{y:.3g}<br>%{customdata} images",
    )
    return figure
