"""One self-contained HTML file from one or several audits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import SurefootError
from ..files import write_text
from .figures import reliability_figure, reliability_rows
from .verdict import advice, percent, verdict


def render_page(audits: Sequence[dict[str, Any]]) -> str:
    """The page as text: script and style inside, nothing fetched."""
    from jinja2 import Environment, PackageLoader
    from plotly.offline import get_plotlyjs

    if not audits:
        raise SurefootError("A page needs at least one audit.")
    environment = Environment(loader=PackageLoader("surefoot.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["percent"] = percent
    return environment.get_template("page.html.j2").render(
        audits=audits,
        whole=all("corruptions" in audit for audit in audits),
        verdicts=[verdict(audit) for audit in audits],
        advice=[advice(audit) for audit in audits],
        reliability=[reliability_rows(audit) for audit in audits],
        figure=reliability_figure(audits),
        plotly=get_plotlyjs(),
        title=" and ".join(audit["subject"]["name"] for audit in audits),
    )


def write_page(path: str | Path, audits: Sequence[dict[str, Any]]) -> Path:
    """Write the page and say where it is."""
    write_text(path, render_page(audits))
    return Path(path)
