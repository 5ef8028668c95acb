"""What `surefoot study` prints and saves: tables, pages, the list of the papers' tables and figures, the state of cells."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files import write_text
from ..report.study_page import write_study
from ..studies.papers import NOT_COMPUTED, places_of
from ..studies.results import Results
from ..studies.schema import Study

if TYPE_CHECKING:
    from ..studies.cells import Cell

SUFFIX = {"md": "md", "csv": "csv", "latex": "tex"}


def paper_lines(titles: dict[str, str]) -> list[str]:
    """For each paper every table and figure with the study that has it, or the reason why none has; then the other studies."""
    lines: list[str] = []
    width, shown = max(map(len, titles)), set[str]()
    for paper, places in places_of().items():
        lines.append(paper)
        for place, names in places.items():
            shown |= {*names}
            lines += [f"  {place:<12}{name:<{width}}  {title}" for name, title in names.items()]
            lines += [] if names else [f"  {place:<12}{'-':<{width}}  not computed: {NOT_COMPUTED[paper][place]}"]
    others = [name for name in titles if name not in shown]
    return [*lines, "others", *(f"  {'':<12}{name:<{width}}  {titles[name]}" for name in others)]


def save_page(path: Path, command: str, study: Study, cells: Sequence[Cell], results: Results) -> None:
    """The table, its differences and every figure of the study as a page."""
    from ..studies.cells import cells_of
    from ..studies.figures import figure_data
    from ..studies.layout import build_table
    from ..studies.table_formats import as_plain, published_apart

    table = as_plain(build_table(study, cells, results, cells_of(study)))
    table["notes"] += [study.note] if study.note else []
    figures = [figure_data(study, cells, results, place) for place in study.figures]
    write_study(path, {**table, "command": command, "published": published_apart(study), "figures": figures})


def text_of(study: Study, cells: Sequence[Cell], results: Results, format: str) -> str:
    """The table; with Markdown also differences, wins, the paper's figures and the choice."""
    from ..studies.cells import cells_of
    from ..studies.hyperparameters import choose
    from ..studies.layout import build_table, count_wins
    from ..studies.table_formats import differences, published_text, render, wins_text

    table = build_table(study, cells, results, cells_of(study))
    text = render(table, format)
    if format != "md":
        return text
    parts = [text, differences(table) if study.table.differences else ""]
    if study.table.wins:
        parts.append(wins_text(count_wins(cells, results, study.table.wins)))
    parts.append(published_text(study))
    if study.select:
        best = choose(study, cells, results)
        winner = "nothing yet" if best is None else f"{best.method} ({best.order[0][1]:.4g}, {best.over})"
        so_far = " so far" if best is not None and table.finished < table.cells else ""
        parts.append(f"Chosen on validation by {study.select}{so_far}: {winner}.\n")
    return "\n".join(part for part in [*parts, f"{study.note}\n" if study.note else ""] if part)


def command_of(name: str, flags: dict[str, Any], verb: str = "run") -> str:
    """The command that makes a table, without the folder of the data, which is this machine's own."""
    words = ["surefoot", "study", verb, name]
    for option, value in flags.items():
        for each in value if isinstance(value, list) else [value]:
            words += [] if each is None or each is False else [f"--{option}"] if each is True else [f"--{option}", str(each)]
    return shlex.join(words)


def save_tables(title: str, command: str, study: Study, cells: Sequence[Cell], results: Results) -> None:
    """Every format beside the cells; above the Markdown stands the command that makes it."""
    for format, suffix in SUFFIX.items():
        above = f"    {command}\n\n" if format == "md" else ""
        write_text(results.folder / f"{title}.{suffix}", above + text_of(study, cells, results, format))


def state_of(cell: Cell, results: Results, work: Path) -> dict[str, Any]:
    """What is known about a cell."""
    from ..studies.runner import title_of

    missing = results.missing(cell)
    history = work / "runs" / cell.name / "history.jsonl"
    epochs = len(history.read_text().splitlines()) if history.is_file() else 0
    state = "finished" if not missing else "begun" if epochs or len(missing) < len(cell.measure) else "to do"
    about = {"cell": cell.name, "state": state, "title": title_of(cell), "labels": dict(cell.labels), "seed": cell.seed}
    return {**about, "epochs": epochs, "of": cell.recipe.training["epochs"], "left": missing}


def in_words(row: dict[str, Any]) -> str:
    """How far a cell is that was begun."""
    if row["state"] != "begun":
        return ""
    trained = f"epoch {row['epochs']} of {row['of']}" if row["epochs"] < row["of"] else "trained"
    return f": {trained}; left: {', '.join(row['left'])}"
