"""Read an audit back as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import SurefootError
from ..files import read_json

SCHEMA = 2


def read_audit(folder: str | Path) -> dict[str, Any]:
    """The content of `audit.json`, with the points of its figures under "points"."""
    folder = Path(folder)
    audit: dict[str, Any] = read_json("audit", folder / "audit.json")
    if audit.get("schema") != SCHEMA:
        raise SurefootError(f"'{folder / 'audit.json'}' has schema {audit.get('schema')}, and this version reads {SCHEMA}.")
    return {**audit, "points": read_json("audit data", folder / "audit-data" / "points.json")}
