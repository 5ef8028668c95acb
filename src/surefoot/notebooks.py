"""What objects show of themselves in a notebook: a small table, in which every word is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from .intervals import Estimate


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A heading, a table with names on the left and values on the right, and what to know about it."""
    cells = ("".join(f"<td{'' if place else LEFT}>{escape(str(word))}</td>" for place, word in enumerate(row)) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    top = "".join(f"<th>{escape(word)}</th>" for word in head)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<h4>{escape(title)}</h4><table><tr>{top}</tr>{body}</table>{below}"


LEFT = " style='text-align:left'"


def digits(value: float | None) -> str:
    """As the eye wants it; an attack on a model without right predictions has no success rate."""
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"


def estimate_row(name: str, value: float | None, low: float | None = None, high: float | None = None) -> tuple[str, str, str]:
    """A number with its interval."""
    if isinstance(value, Estimate):
        low, high = value.low, value.high
    return name, digits(value), f"{digits(low)} to {digits(high)}"


ESTIMATES = ("", "value", "95 % interval")  # the head of such rows
