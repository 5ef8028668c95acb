"""How much noise moves logits and probabilities (macs Def. 4.3, Tab. 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .scatters import scatter

if TYPE_CHECKING:
    from plotly import graph_objects as go


def sensitivity_figure(result: dict[str, Any]) -> go.Figure:
    """L(x) against S(x), a point for each image."""
    title = f"S(x): mean change of the probabilities, noise {result['std']:g}"
    return scatter(result["values"], result["probability_change"], "L(x): logit change for each unit of noise", title)
