"""The figures of a study: which cells and measurements each needs, and what it draws, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..errors import UnknownName
from ..measurements.registry import check_measure
from .cells import Cell, drawn_labels
from .layout import build_table, varies
from .results import Results, Snapshot
from .schema import AXES, NUMBERS, Figure, Layout, Study
from .table_formats import as_plain

EACH = ".*"  # at the end of a column: for each name that its measurement has, as of corruptions


def figure_of(study: Study, place: str) -> Figure:
    if place not in study.figures:
        raise UnknownName("figure of this study", place, study.figures)
    return study.figures[place]


def chosen_cells(cells: Sequence[Cell], figure: Figure) -> tuple[list[Cell], list[str]]:
    """The cells of a figure, and what stands in place of labels that this scale has not, in words."""
    chosen, notes = list(cells), []
    for axis, labels in figure.only.items():
        own = [cell for cell in chosen if str(cell.labels[axis]) in labels]
        if not own:
            here = dict.fromkeys(str(cell.labels[axis]) for cell in chosen)
            notes.append(f"At this scale {', '.join(here)} in place of {', '.join(labels)}.")
        chosen = own or chosen
    return chosen, notes


def cells_for(study: Study, cells: Sequence[Cell], figure: Figure) -> list[Cell]:
    """The cells that a figure needs, with what it needs of each: numbers of every seed, points of the first."""
    numbers, drawn = {column.partition(".")[0] for column in figure.columns}, drawn_labels(study, [figure])
    needed = []
    for cell in chosen_cells(cells, figure)[0]:
        own = {label: measure for label, measure in cell.measure.items() if label in numbers | (cell.drawn & drawn)}
        needed += [replace(cell, measure=own, drawn=cell.drawn & drawn)] if own else []
    return needed


def figure_data(study: Study, cells: Sequence[Cell], results: Results, place: str) -> dict[str, Any]:
    """A figure as plain values: its title, notes, and for each of its drawings a table or the points of each cell."""
    figure, kept = figure_of(study, place), Snapshot(results)
    chosen, notes = chosen_cells(cells, figure)
    parts: list[dict[str, Any]] = []
    for drawing in figure.draw:
        if drawing in NUMBERS:
            wanted = [column for column in figure.columns if column.endswith(EACH) == (drawing == "profile")]
            layout = Layout(columns=tuple(expanded(study, wanted)), differences=False)
            table = build_table(study.model_copy(update={"table": layout}), chosen, kept)
            parts.append({"draw": drawing, "table": as_plain(table)})
        else:
            labels = figure.labels(study.measure, drawing)
            panels = [panel for label in labels for panel in panels_of(chosen, kept, label, several=len(labels) > 1)]
            parts.append({"draw": drawing, "panels": panels})
    missing = sum(bool(results.missing(cell)) for cell in cells_for(study, cells, figure))
    notes += [f"{missing} cell{'s are' if missing > 1 else ' is'} not finished."] if missing else []
    about = {"place": place, "title": figure.title, "paper": study.paper, "notes": notes}
    return {**about, "options": figure.options, "parts": parts}


def panels_of(cells: Sequence[Cell], results: Results, label: str, several: bool) -> Iterator[dict[str, Any]]:
    """The points of a measurement for the first seed of each cell, named by what varies."""
    axes = [axis for axis in AXES if varies(cells, axis)]
    for cell in cells:
        points = results.points(cell, label) if cell.seed == 0 else None
        if points is not None:
            words = [str(cell.labels[axis]) for axis in axes] or [str(cell.labels["method"])]
            yield {"name": ", ".join([*words, *([label] if several else [])]), "label": label, "points": points}


def expanded(study: Study, columns: Sequence[str]) -> Iterator[str]:
    """Columns, those that end in `.*` for each of the names that their measurement takes."""
    for column in columns:
        if column.endswith(EACH):
            label = column.partition(".")[0]
            names = check_measure(label, study.measure[label])[1]["names"]
            yield from (f"{column.removesuffix(EACH)}.{name}" for name in names)
        else:
            yield column
