"""One page of a monitor: numbers beside those of the audit, how good the estimates are, drift, alarms."""

from __future__ import annotations

from typing import Any


def render_monitor(name: str, data: str, found: dict[str, Any]) -> str:
    """The page as text, with nothing fetched."""
    from jinja2 import Environment, PackageLoader

    from .words import percent, short

    environment = Environment(loader=PackageLoader("surefoot.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"percent": percent, "short": short}
    return environment.get_template("monitor.html.j2").render(name=name, data=data, found=found)
