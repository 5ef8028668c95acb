"""Figures as pure functions of plain results."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ..intervals import wilson

COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
)  # Okabe and Ito: safe for colour-blind eyes


def reliability_rows(audit: dict[str, Any]) -> list[dict[str, float]]:
    """One row for each bin that holds images: its share, mean confidence, accuracy and the accuracy's 95 % interval."""
    bins = audit["points"]["reliability"]
    total = sum(bins["counts"])
    return [
        {"share": count / total, "confidence": confidence / count, **wilson(correct, count)}
        for count, confidence, correct in zip(bins["counts"], bins["confidences"], bins["correct"], strict=True)
        if count
    ]


def reliability_figure(audits: Sequence[dict[str, Any]]) -> str:
    """Accuracy against confidence with each bin's interval, as plotly's JSON; the fewer images a bin holds, the paler it is."""
    from plotly import graph_objects as go

    figure = go.Figure()
    line = {"color": "#888", "dash": "dash", "width": 1}
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, name="perfect calibration", hoverinfo="skip")
    for audit, colour in zip(audits, COLOURS * len(audits), strict=False):
        rows = reliability_rows(audit)
        figure.add_scatter(
            x=[row["confidence"] for row in rows],
            y=[row["accuracy"] for row in rows],
            error_y={
                "array": [row["high"] - row["accuracy"] for row in rows],
                "arrayminus": [row["accuracy"] - row["low"] for row in rows],
                "thickness": 1,
                "width": 2,
            },
            customdata=[row["share"] for row in rows],
            mode="markers",
            name=escape(audit["subject"]["name"]),
            marker={"color": colour, "size": 14, "opacity": [opacity(row["share"]) for row in rows]},
            hovertemplate="confidence %{x:.3f}<br>accuracy %{y:.3f}<br>%{customdata:.1%} of the images",
        )
    figure.update_layout(
        xaxis={"title": {"text": "confidence"}, "range": [0, 1.04], "tickformat": ".0%"},
        yaxis={"title": {"text": "accuracy"}, "range": [0, 1.06], "tickformat": ".0%"},
        legend={"orientation": "h", "y": 1.12},
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        template="none",
    )
    return safe_json(json.loads(figure.to_json()))


def opacity(share: float) -> float:
    """A bin's share of the images as opacity, never so pale that it cannot be seen."""
    return 0.15 + 0.85 * math.sqrt(share)


def escape(text: str) -> str:
    """Plotly reads a few HTML tags in its labels; a name is never one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def safe_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
