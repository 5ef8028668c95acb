"""`surefoot list`: every name that can be given."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ..attacks.table import FIXED, NOT_OPTIONS
from ..errors import UnknownName
from ..registry import Registry, import_target
from ..schemas import defaults_of
from ..training.arguments import NOT_TRAINING_OPTIONS
from ..training.option_names import TAKEN_BY

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
TABLES = {
    "objectives": "surefoot.objectives.methods:OBJECTIVES",
    "views": "surefoot.views.table:VIEWS",
    "models": "surefoot.models.builders:MODELS",
    "data": "surefoot.data.arguments:DATASETS",
    "corruptions": "surefoot.corruptions.families:CORRUPTIONS",
    "attacks": "surefoot.attacks.table:ATTACKS",
    "measurements": "surefoot.measurements.registry:MEASUREMENTS",
}
SECTIONS = {  # of --set, with a function that takes their options, and what else it takes
    "data-options": TAKEN_BY["data"],
    "model-options": TAKEN_BY["model"],
    "augmentation": TAKEN_BY["augmentation"],
    "training": ("surefoot.training._fit:fit", NOT_TRAINING_OPTIONS),
}
KINDS = [*TABLES, *SECTIONS]


@app.command("list")
def list_names(
    kind: Annotated[str | None, typer.Argument(help="One of: " + ", ".join(KINDS))] = None,
    match: Annotated[
        str | None, typer.Option(help="Only names that match, for example 'resnet*'; with models timm's too")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """What there is: every name, and every option that --set takes (data-options are for `--set data.NAME=VALUE`)."""
    if kind is not None and kind not in KINDS:
        raise UnknownName("kind", kind, KINDS)
    by_kind = {name: matching(rows(name, match), match) for name in KINDS if kind in (None, name)}
    if json_:
        print(json.dumps(by_kind))
        return
    console = Console()
    for name, lines in by_kind.items():
        table = Table(title=name, title_justify="left", show_header=False, box=None, padding=(0, 2))
        for line in lines:
            options = ", ".join(f"{key}={value}" for key, value in line.get("options", {}).items())
            table.add_row(line["name"], line["help"], options)
        console.print(table)
        if name == "models" and match is None:
            console.print(f"  and every timm classifier ({timm_count()} names): surefoot list models --match 'resnet*'")


def matching(lines: list[dict[str, Any]], match: str | None) -> list[dict[str, Any]]:
    """The entries whose names match, whatever their case."""
    return [line for line in lines if match is None or fnmatchcase(line["name"].lower(), match.lower())]


def rows(kind: str, match: str | None) -> list[dict[str, Any]]:
    """The entries of one kind."""
    if kind in SECTIONS:
        target, left_out = SECTIONS[kind]
        options = defaults_of(import_target("section", target), left_out)
        return [{"name": name, "help": f"default {value}"} for name, value in options.items()]
    registry: Registry = import_target("table", TABLES[kind])
    entries: list[dict[str, Any]] = [{"name": entry.name, "help": entry.help} for entry in registry]
    if kind in ("objectives", "views"):
        for line in entries:
            line["options"] = defaults_of(registry.load(line["name"]))
    if kind == "measurements":
        from ..measurements.registry import default_options

        for line in entries:
            line["options"] = default_options(line["name"])
    if kind == "attacks":
        for line in entries:
            line["options"] = {} if line["name"] in FIXED else attack_options(registry.load(line["name"]))
    if kind == "models" and match is not None:
        from ..data.settings import TORCHVISION, model_names

        known = {entry["name"] for entry in entries}
        others = [name for name in model_names() if name not in known]
        entries += [{"name": name, "help": "torchvision" if name.startswith(TORCHVISION) else "timm"} for name in others]
    return entries


def attack_options(attack: Any) -> dict[str, Any]:
    """What `surefoot attack --set` takes; the budget is --eps."""
    from ..attacks.auto_attack import AutoAttack

    return defaults_of(type(attack) if isinstance(attack, AutoAttack) else attack, (*NOT_OPTIONS, "eps"))


def timm_count() -> int:
    import timm

    return len(timm.list_models())
