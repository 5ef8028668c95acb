"""Whether features and loss stay where they are under noise (discriminative Def. 6.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scatters import scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go


def noise_stability_figure(result: dict[str, Any]) -> go.Figure:
    """eta against |l_out - l(x)|, a point for each image whose features ever left the ball."""
    pairs = zip(result["outside_losses"], result["clean_losses"], strict=True)
    changes = [None if out is None else abs(out - clean) for out, clean in pairs]
    title = f"eta: share of draws within {result['distance']:g}"
    return scatter(result["values"], changes, title, "|l_out - l(x)|")
