"""The distribution of the logit margins (macs Tab. 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .histograms import histogram

if TYPE_CHECKING:
    from plotly import graph_objects as go


def margin_figure(margins: list[float]) -> go.Figure:
    """Shares of images by margin, with the line at 0 beyond which the answer is right."""
    figure = histogram({"margin": margins}, "margin: logit of the right class minus the best other")
    figure.add_vline(x=0, line={"color": "#888", "dash": "dash"})
    figure.update_layout(showlegend=False)
    return figure
