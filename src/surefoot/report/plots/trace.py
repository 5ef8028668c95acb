"""Traces of the Fisher information and of the Hessian."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .histograms import histogram

if TYPE_CHECKING:
    from plotly import graph_objects as go


def trace_figure(results: dict[str, dict[str, Any]]) -> go.Figure:
    """Shares of images by trace on a logarithmic axis; a smooth net can have traces below 0, which are counted."""
    groups = {f"{name} ({result['method']})": result["values"] for name, result in results.items()}
    return histogram(groups, "trace", logarithmic=True)
