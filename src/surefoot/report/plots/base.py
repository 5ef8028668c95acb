"""What every figure shares: colours, escaping, axes that follow the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly import graph_objects as go

COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
)  # Okabe and Ito: safe for colour-blind eyes


def new_figure(x: str, y: str, **layout: Any) -> go.Figure:
    """An empty figure with these axis titles, transparent so that light and dark pages both suit it."""
    from plotly import graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        xaxis={"title": {"text": x}},
        yaxis={"title": {"text": y}},
        legend={"orientation": "h", "y": 1.12},
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        template="none",
    )
    figure.update_layout(**layout)
    return figure


def escape(text: str) -> str:
    """Plotly reads a few HTML tags in its labels; a name is never one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
