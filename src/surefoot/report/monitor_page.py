"""One page of a monitor: numbers beside those of the audit, how good the estimates are, drift, alarms."""

from __future__ import annotations

from typing import Any

from .templating import template


def render_monitor(name: str, data: str, found: dict[str, Any]) -> str:
    """The page as text, with nothing fetched."""
    return template("monitor").render(name=name, data=data, found=found)
