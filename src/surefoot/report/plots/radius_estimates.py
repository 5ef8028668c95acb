"""The radii of macs Thm 4.5 and Cor. 4.6, which are no certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .histograms import histogram

if TYPE_CHECKING:
    from plotly import graph_objects as go


def radius_estimates_figure(result: dict[str, Any]) -> go.Figure:
    """Shares of images by estimated radius, with the reminder that these are estimates."""
    figure = histogram({"Thm 4.5": result["values"], "Cor. 4.6": result["logit_radii"]}, "estimated radius (no certificate)")
    figure.update_layout(meta={"note": result["note"]})
    return figure
