"""Which corruptions an audit measured: means over other ones are no comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Condition = tuple[str, Any, Any]
CELLS = "corruptions.cells."


def conditions(audit: Mapping[str, Any]) -> set[Condition]:
    """Name, severity and kind of origin of every corruption: generated, or read from disk, wherever that is."""
    cells = (audit.get("corruptions") or {}).get("cells", ())
    return {(cell["name"], cell["severity"], str(cell.get("origin")).partition(" ")[0]) for cell in cells}


def damaged_alike(name: str, one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether a number means the same damage in two audits: its own cell, or for a mean all of them."""
    first, second = conditions(one), conditions(two)
    if name.startswith(CELLS):
        first, second = (
            {each for each in cells if name.startswith(f"{CELLS}{each[0]}.{each[1]}.")} for cells in (first, second)
        )
    return first == second or not (name.startswith("corruptions") or "corrupted" in name)
