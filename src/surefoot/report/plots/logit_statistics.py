"""Margin, norm and largest logit side by side (macs Tab. 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .histograms import histogram

if TYPE_CHECKING:
    from plotly import graph_objects as go


def logit_statistics_figure(result: dict[str, Any]) -> go.Figure:
    """Three distributions, each named with its mean."""
    names = {"margin": ("values", "mean_margin"), "norm": ("norms", "mean_norm"), "largest": ("largest", "mean_largest")}
    return histogram({f"{name}, mean {result[mean]:.3g}": result[key] for name, (key, mean) in names.items()}, "logits")
