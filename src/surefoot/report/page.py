"""One self-contained HTML file from one or several audits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..auditing.migration import migrate
from ..errors import SurefootError, UnknownName
from ..files import read_json, write_text
from .advice import advice, warnings
from .figures import safe_json
from .sections import sections_of
from .sections.base import models_of
from .templating import template
from .verdict import cards, headline


def read_audit(folder: str | Path) -> dict[str, Any]:
    """The content of `audit.json`, with the points of its figures under "points"."""
    folder = Path(folder)
    audit = migrate(folder / "audit.json", read_json("audit", folder / "audit.json"))
    return {**audit, "points": read_json("audit data", folder / "audit-data" / "points.json")}


ASSETS = ("inline", "beside")
SCRIPT = "plotly.min.js"
OWN_SCRIPTS = ("figures", "theme", "tables", "slider", "heat")


def render_page(
    audits: Sequence[dict[str, Any]],
    *,
    differences: Sequence[dict[str, Any]] = (),
    notes: Sequence[str] = (),
    assets: str = "inline",
    predictions: str | None = None,
) -> str:
    """The page as text: script and style inside, nothing fetched.

    `differences` are paired differences between models, {name, first, second, value, low, high, real}, and `notes` say what to
    know about them. With `assets` "beside", plotly's script is expected next to the page instead of inside it. `predictions` is
    the name of a file next to the page that has all of them.
    """
    from plotly.offline import get_plotlyjs

    if not audits:
        raise SurefootError("A page needs at least one audit.")
    if assets not in ASSETS:
        raise UnknownName("place for the script", assets, ASSETS)
    models = models_of(audits)
    sections = sections_of(models)
    figures = {each.name: each.figure for section in sections for each in section.drawings}
    data: dict[str, Any] = {"figures": figures}
    for section in sections:
        data |= section.data
    tops = [
        {"model": model, "headline": headline(model.audit), "cards": cards(model.audit), "todo": advice(model.audit)}
        for model in models
    ]
    return template("page").render(
        title=" and ".join(model.name for model in models),
        tops=tops,
        warnings=[(model.name, warning) for model in models for warning in warnings(model.audit)],
        several=len(models) > 1,
        differences=differences,
        notes=notes,
        sections=sections,
        predictions=predictions,
        data=safe_json(data),
        scripts=OWN_SCRIPTS,
        beside=SCRIPT if assets == "beside" else None,
        plotly="" if assets == "beside" else get_plotlyjs(),
    )


def write_page(
    path: str | Path,
    audits: Sequence[dict[str, Any] | str | Path],
    *,
    differences: Sequence[dict[str, Any]] = (),
    notes: Sequence[str] = (),
    assets: str = "inline",
    predictions: str | None = None,
) -> Path:
    """Write the page of audits, or of the folders that hold them, and say where it is.

    With `assets` "beside", plotly's script goes next to it, once for all pages there.

    >>> import torch
    >>> import surefoot as sf
    >>> labels = torch.arange(60) % 3
    >>> logits = 2 * torch.nn.functional.one_hot(labels, 3) + torch.randn(60, 3)
    >>> predictions = sf.Predictions.from_logits(logits, labels)
    >>> found = sf.audit_predictions(predictions, output="audits/mine")
    >>> sf.write_page("report.html", ["audits/mine"]).name
    'report.html'
    """
    path = Path(path)
    contents = [audit if isinstance(audit, dict) else read_audit(audit) for audit in audits]
    text = render_page(contents, differences=differences, notes=notes, assets=assets, predictions=predictions)
    if assets == "beside":
        write_script(path.parent / SCRIPT)
    write_text(path, text)
    return path


def write_script(path: Path) -> None:
    """Plotly's script, unless it is there already."""
    from plotly.offline import get_plotlyjs

    script = get_plotlyjs()
    if not path.is_file() or path.read_text(encoding="utf-8") != script:
        write_text(path, script)
