"""`surefoot compare`: audits side by side, with paired differences, and words that say which of them are real."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..auditing.depths import find_depth
from ..data.settings import MODEL_FILES
from ..errors import NotFound, SurefootError
from ..keys import LARGEST as LARGEST_SEED
from ..metrics import SHARE, of_path, path_label
from ..plain import plain
from ..report.page import read_audit, write_page
from . import options as flag

if TYPE_CHECKING:
    from ..auditing.comparison import Compared, Comparison, Difference

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def compare(
    targets: Annotated[list[Path], typer.Argument(help="Run folders with an audit, audit folders, audit.json or model files")],
    audit: Annotated[bool, typer.Option("--audit", help="Audit run folders that have none yet")] = False,
    depth: Annotated[str | None, typer.Option(help="With --audit: quick, standard or full [default: quick]")] = None,
    allow_code: flag.AllowCode = False,
    primary: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What you meant to compare, such as accuracy: not corrected; may be repeated"),
    ] = None,
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Not only each against the first")] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides the intervals")] = 0,
    output: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Draw one page for all of them")] = None,
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Put audits of the same images side by side; the first is what the others are compared with."""
    if len(targets) < 2:
        raise SurefootError("Give at least two run folders or audits.")
    if depth is not None and not audit:
        raise SurefootError("--depth is for --audit.")
    if allow_code and not audit:
        raise SurefootError("--allow-code is for --audit.")
    flag.check_output(output)
    deployed = {target for target in targets if str(target).lower().endswith(MODEL_FILES)}
    if targets[0] in deployed:
        raise SurefootError(f"The first must be a run or an audit, whose images '{targets[0]}' is then audited on.")
    for target in deployed:
        if not target.is_file():
            raise NotFound("model file", target)
    before = [target for target in targets if target not in deployed]
    for target in lacking(before, audit or bool(deployed), depth, allow_code):
        make_audit(target, depth or "quick", quiet, allow_code)
    from ..auditing.comparison import compare as measure_differences
    from ..auditing.comparison import read_compared

    made = {target: audit_file(target, targets[0], quiet) for target in dict.fromkeys(targets) if target in deployed}
    models = [read_compared(made.get(target, target)) for target in targets]
    comparison = measure_differences(models, all_pairs=all_pairs, primary=primary or (), seed=seed)
    if output is not None:
        draw_page(output, models, comparison)
    if json_:
        print(json.dumps(plain(comparison)))
    elif not quiet:
        show(comparison)
        if output is not None:
            print(f"page: {output}")


def lacking(targets: Sequence[Path], make: bool, depth: str | None, allow_code: bool) -> list[Path]:
    """The run folders that have no audit yet; every target is looked at before the first is audited."""
    if depth is not None:
        find_depth(depth)
    for target in targets:
        check_there(target, make)
    without_audit = [target for target in dict.fromkeys(targets) if lacks_audit(target, depth)]
    if without_audit:
        from ..training.runs import load_run

        for target in without_audit:
            if not load_run(target, allow_code=allow_code).recipe.data:
                raise SurefootError(f"The data of '{target}' came from Python and have no name: surefoot audit takes --data.")
    return without_audit


def lacks_audit(target: Path, depth: str | None) -> bool:
    """Whether a target must be audited first; refused where it has an audit of another depth."""
    if target.is_file() or (target / "audit.json").is_file():
        from ..auditing.comparison import read_compared

        audited_depth = read_compared(target).audit["subject"].get("depth")
        if depth is not None and audited_depth != depth:
            what = "is of predictions alone" if audited_depth is None else f"has depth {audited_depth}"
            raise SurefootError(
                f"The audit of '{target}' {what}, not {depth}: surefoot audit with --depth {depth} replaces it."
            )
        return False
    return True


def check_there(target: Path, make: bool) -> None:
    """Refuse what has no audit and cannot get one."""
    if target.is_file() or (target / "audit.json").is_file():
        return
    if not target.exists():
        raise NotFound("run folder or audit", target)
    if not (target / "recipe.yaml").is_file():
        raise SurefootError(f"'{target}' holds no audit.json and is no run folder.")
    if not make:
        raise SurefootError(f"'{target}' has no audit yet: surefoot audit {target} makes it, or pass --audit.")


def make_audit(target: Path, depth: str, quiet: bool, allow_code: bool) -> None:
    """Audit a run as `surefoot audit` would."""
    from ..auditing.audit import audit as measure
    from .audit import provenance_of
    from .audit import show as show_audit
    from .targets import from_run

    loaded = from_run(target, None, {}, allow_code)
    options: dict[str, Any] = {"depth": depth, "calibrate_on": loaded.calibrate_on, "progress": not quiet}
    words = ["surefoot", "audit", str(target), "--depth", depth, *(["--allow-code"] * allow_code)]
    options["provenance"] = provenance_of(loaded, shlex.join(words))
    measure(loaded.model, loaded.data, name=loaded.name, output=target, **options)
    show_audit(target, json_=False, quiet=True)


def audit_file(target: Path, first: Path, quiet: bool) -> Path:
    """Audit a model file on the images of an audit, at its depth and with its seed, without what a file cannot give."""
    from ..auditing.audit import audit as measure
    from ..auditing.comparison import read_compared
    from ..data.loading import load_data
    from ..data.remote_sources import local_data
    from ..models.loading import load_model
    from .targets import folder_of

    subject = read_compared(first).audit["subject"]
    section = {key: value for key, value in subject["data"].items() if value is not None}
    if not section:
        raise SurefootError(f"The data of '{first}' came from Python and have no name: audit '{target}' with sf.audit.")
    data = load_data(**local_data(f"Audit '{first}'", section, has_flags=False))
    options: dict[str, Any] = {"depth": subject["depth"], "split": subject["split"], "seed": subject["seed"]}
    words = ["surefoot", "compare", str(first), str(target)]
    options |= {
        "skip": ["geometry", *(["attacks"] * (target.suffix == ".onnx"))],
        "overwrite": True,
        "progress": not quiet,
        "provenance": {"command": shlex.join(words)},
    }
    folder = folder_of(str(target))
    measure(load_model(str(target), data=data), data, name=target.name, output=folder, **options)
    return folder


def draw_page(path: Path, models: list[Compared], comparison: Comparison) -> None:
    """The page of all audits, with their differences."""
    for model in models:
        if not model.whole:
            raise SurefootError(f"No page of '{model.name}' can be drawn: the data of its figures are another audit's.")
    audits = [read_audit(model.folder) for model in models]
    for plain_audit, name in zip(audits, comparison.models, strict=True):
        plain_audit["subject"]["name"] = name
    try:
        write_page(path, audits, differences=comparison.for_page(), notes=comparison.notes)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        files = " or ".join(f"'{model.folder}'" for model in models)
        raise SurefootError(
            f"No page can be drawn: audit.json or points.json in {files} is not as an audit writes it."
        ) from error


def show(comparison: Comparison) -> None:
    """A table for each pair and a sentence under it."""
    for note in comparison.notes:
        print(f"! {note}")
    pairs = dict.fromkeys((item.first, item.second) for item in comparison.differences)
    for first, second in pairs:
        own = [item for item in comparison.differences if (item.first, item.second) == (first, second)]
        Console().print(as_table(first, second, own, comparison.values))
        print(in_words(second, first, own, sum(not item.primary for item in comparison.differences)))


def as_table(first: str, second: str, differences: list[Difference], values: dict[str, dict[str, float]]) -> Table:
    """A row for each number, for the screen: whole words on 80 columns, long names on several lines."""
    from ..auditing.comparison import MCE

    title = Text(f"{second} minus {first}, with the intervals that the verdict uses")
    shown = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("", overflow="fold")
    for column in (first, second, "difference"):
        shown.add_column(Text(column), justify="right", overflow="fold")
    shown.add_column("verdict", overflow="fold")
    for item in differences:
        by_model = {first: 1.0, second: 1 + item.value} if item.name == MCE else values.get(item.name, {})
        value, low, high = (number(item.name, each, True) for each in (item.value, *item.adjusted))
        pair = (number(item.name, by_model[name]) if name in by_model else "" for name in (first, second))
        unit = ", %" if of_path(item.name).unit == SHARE else ""
        shown.add_row(
            Text(path_label(item.name) + unit + (" (primary)" if item.primary else "")),
            *pair,
            f"{value} ({low} to {high})",
            verdict(item),
        )
    return shown


def number(name: str, value: float, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{100 * value:{sign}.2f}" if of_path(name).unit == SHARE else f"{value:{sign}.4f}"


def verdict(item: Difference) -> str:
    said = {1: "better", -1: "worse", 0: "equal"}[item.better] if item.real else "cannot tell"
    return said if item.paired else f"{said} (unpaired)"


def in_words(second: str, first: str, differences: list[Difference], compared: int) -> str:
    """What is real."""
    better, worse = (sum(item.real and item.better == side for item in differences) for side in (1, -1))
    if not better + worse:
        return f"{second} and {first} are not distinguishable in any of {len(differences)} numbers."
    return (
        f"{second} is really better than {first} in {better} and worse in {worse} of {len(differences)} numbers; "
        f"the rest is not distinguishable (Holm's correction for {compared} comparisons)."
    )
