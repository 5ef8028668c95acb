"""Figures as pure functions of plain results."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ..intervals import wilson
from .plots.base import COLOURS, escape, new_figure


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
    figure = new_figure(
        "confidence",
        "accuracy",
    )
    figure.update_layout(xaxis={"range": [0, 1.04], "tickformat": ".0%"}, yaxis={"range": [0, 1.06], "tickformat": ".0%"})
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
    return safe_json(json.loads(figure.to_json()))


def opacity(share: float) -> float:
    """A bin's share of the images as opacity, never so pale that it cannot be seen."""
    return 0.15 + 0.85 * math.sqrt(share)


def safe_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
