"""The two numbers of discriminative Thm 6.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .histograms import histogram

if TYPE_CHECKING:
    from plotly import graph_objects as go


def curvature_bounds_figure(result: dict[str, Any], curvature: dict[str, Any] | None = None) -> go.Figure:
    """Both sides on a logarithmic axis, with the measured curvature between them where it is given."""
    groups = {"Eq. 16 (lower)": result["lower"], "Eq. 15 (upper)": result["values"]}
    if curvature is not None:
        groups["measured curvature"] = curvature["values"]
    figure = histogram(groups, "sum of squared eigenvalues", logarithmic=True)
    figure.update_layout(meta={"note": result["note"]})
    return figure
