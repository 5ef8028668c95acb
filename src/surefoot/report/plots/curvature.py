"""Curvature of the loss around images (discriminative Eq. 21), by steps and by the Hessian."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .histograms import histogram

if TYPE_CHECKING:
    from plotly import graph_objects as go


def curvature_figure(results: dict[str, dict[str, Any]]) -> go.Figure:
    """Shares of images by curvature on a logarithmic axis; Eq. 21 and the Hessian's under their own names."""
    groups = {}
    for name, result in results.items():
        how = f"Eq. 21, step {result['step']:g}" if result["step"] else "Hessian"
        groups[f"{name} ({how})"] = result["values"]
    return histogram(groups, "curvature", logarithmic=True)
