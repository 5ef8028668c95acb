"""Figures on their way to the page: what each shows in a sentence, and JSON that no name can break out of."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly import graph_objects as go

DIGITS = 6  # that count, of a number in a figure


@dataclass(frozen=True)
class Drawing:
    """A figure of plotly as plain values, with its title and a sentence that says what it shows.

    Its table is made in the browser from the very numbers that are drawn, so that they are on the page once.
    """

    name: str
    title: str
    sentence: str
    figure: dict[str, Any]


def drawing(name: str, title: str, sentence: str, figure: go.Figure) -> Drawing:
    """A figure as plain values; points drawn by the graphics card become ordinary ones, which every browser prints."""
    plain: dict[str, Any] = json.loads(figure.to_json())
    plain["layout"].pop("template", None)
    for trace in plain["data"]:
        if trace["type"] == "scattergl":
            trace["type"] = "scatter"
    return Drawing(name, title, sentence, plain)


def compact(value: Any) -> Any:
    """Plain values with floats of six digits, and None for a number that is not defined."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: compact(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [compact(item) for item in value]
    return value


def safe_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(compact(value), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
