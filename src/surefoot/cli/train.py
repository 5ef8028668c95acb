"""`surefoot train`: a recipe from a file, `--set` and flags; then the loop."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SurefootError, UnknownName
from ..schemas import defaults_of, parse_value
from ..training.loop import fit
from ..training.recipes import NAMED, NOT_TRAINING_OPTIONS, SECTIONS, Recipe, read_recipe

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
DEFAULTS = defaults_of(fit, NOT_TRAINING_OPTIONS)
DATA, MODEL, OBJECTIVE = "digits", "small-resnet", "cross-entropy"


@app.command()
def train(
    data: Annotated[str | None, typer.Option(help=f"Data set [default: {DATA}]")] = None,
    model: Annotated[str | None, typer.Option(help=f"Any timm name, or {MODEL} [default: {MODEL}]")] = None,
    objective: Annotated[
        str | None, typer.Option(help=f"Training method, or package.module:Class [default: {OBJECTIVE}]")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help=f"[default: {DEFAULTS['epochs']}]")] = None,
    batch_size: Annotated[int | None, typer.Option(help=f"[default: {DEFAULTS['batch_size']}]")] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", "--lr", help=f"[default: {DEFAULTS['learning_rate']}]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides weights, order and noise [default: 0]")] = None,
    recipe: Annotated[Path | None, typer.Option(help="YAML file; flags and --set win over it")] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.NAME=VALUE", help="Any option; may be repeated")
    ] = None,
    output: Annotated[Path, typer.Option(help="Run folder")] = Path("runs/latest"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is there")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    json_: Annotated[bool, typer.Option("--json", help="Print the last epoch as JSON")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only")] = False,
) -> None:
    """Train a classifier; `surefoot list` shows every name and option."""
    flags = {"data": data, "model": model, "objective": objective, "seed": seed}
    training = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
    composed = compose(read_recipe(recipe) if recipe else {}, set or [], flags, training)
    run = Recipe.check(composed).run(output=output, overwrite=overwrite, device=device, progress=not quiet)
    last = run.history[-1]
    if json_:
        print(json.dumps({"folder": str(output), **last}))
    elif not quiet:
        accuracy, ece = last["validation_accuracy"], last["validation_ece"]
        print(f"validation accuracy {accuracy:.1%}, ECE {ece:.1%}; run written to {output}")
        print(f"next: surefoot audit {output}")


def compose(base: dict[str, Any], settings: Sequence[str], flags: dict[str, Any], training: dict[str, Any]) -> dict[str, Any]:
    """A recipe file, then `--set`, then flags; a flag that names another method drops the file's options of the old one."""
    out: dict[str, Any] = {"data": DATA, "model": MODEL, "objective": OBJECTIVE, **base}
    for section in NAMED:
        out[section] = {"name": out[section]} if isinstance(out[section], str) else dict(out[section] or {})
        if flags[section] is not None and flags[section] != out[section].get("name"):
            out[section] = {"name": flags[section]}
    out["training"] = dict(out.get("training") or {})
    for setting in settings:
        path, equals, text = setting.partition("=")
        section, _, name = path.partition(".")
        if section not in SECTIONS:
            raise UnknownName("section", section, SECTIONS)
        if not equals or (not name and section != "seed"):
            raise SurefootError(f"--set takes SECTION.NAME=VALUE, got '{setting}'.")
        if name:
            out[section][name] = parse_value(text)
        else:
            out[section] = parse_value(text)
    if flags["seed"] is not None:
        out["seed"] = flags["seed"]
    out["training"] |= {name: value for name, value in training.items() if value is not None}
    return out
