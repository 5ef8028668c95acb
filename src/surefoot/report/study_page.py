"""One self-contained HTML file from the table of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..files import write_text
from .figures import Drawing, drawing, safe_json
from .plots.corruptions import method_differences_figure, slopes_figure, trade_off_figure
from .study_figures import figure_drawings
from .templating import template

COSTS = {
    "cost.epochs": "training time, in epochs of cross-entropy",
    "cost.relative": "cost of a step, in steps of cross-entropy",
}
TRADE_OFF = ("corruptions.accuracy", "corruptions.ece", "clean.accuracy")
OWN_SCRIPTS = ("figures", "theme", "tables")


def render_study(table: dict[str, Any]) -> str:
    """The page as text.

    `table` has a title, the command, axes, columns {title, name}, the baseline, notes, and rows {key, cells}; a cell is None or
    {mean, shown, spread, mark, best, difference: {value, low, high, within_noise, seeds}, paper}. `published` are the paper's
    own figures {title, axes, columns, rows} where they stand apart. `figures` are what `studies.figures.figure_data` gives;
    a page without rows has only them.
    """
    from plotly.offline import get_plotlyjs

    groups = [{**figure, "drawings": figure_drawings(figure)} for figure in table.get("figures", ())]
    drawn = {part["draw"] for figure in table.get("figures", ()) for part in figure["parts"]}
    changes = [*trade_off_of(table), *differences_of(table), *([] if "slopes" in drawn else slopes_of(table))]
    drawings = [*(each for group in groups for each in group["drawings"]), *changes]
    return template("study").render(
        table=table,
        drawings=changes,
        groups=groups,
        data=safe_json({"figures": {each.name: each.figure for each in drawings}}),
        scripts=OWN_SCRIPTS,
        plotly=get_plotlyjs(),
    )


def write_study(path: str | Path, table: dict[str, Any]) -> Path:
    """Write the page and say where it is."""
    write_text(path, render_study(table))
    return Path(path)


def trade_off_of(table: dict[str, Any]) -> list[Drawing]:
    """What robustness costs, where a study has the cost of training beside accuracy and ECE under corruption."""
    names = [column["name"] for column in table["columns"]]
    cost = next((name for name in COSTS if name in names), None)
    if cost is None or not set(TRADE_OFF) <= set(names):
        return []
    cells = {label(row["key"]): [row["cells"][names.index(name)] for name in (cost, *TRADE_OFF)] for row in table["rows"]}
    points = {key: tuple(cell["mean"] for cell in own) for key, own in cells.items() if all(own)}
    said = (
        f"Up and left is better: accuracy under corruption against {COSTS[cost]}. A light point is well calibrated"
        " under corruption, a large one accurate on clean images; on the dotted line none is both cheaper and better."
    )
    return [drawing("trade-off", "What robustness costs", said, trade_off_figure(points, COSTS[cost]))] if points else []


def differences_of(table: dict[str, Any]) -> list[Drawing]:
    """For every column the paired differences from the baseline, where two seeds or more can show one."""
    drawings = []
    for index, column in enumerate(table["columns"]):
        rows = {}
        for row in table["rows"]:
            cell = row["cells"][index]
            if cell and cell["difference"] and cell["difference"]["low"] is not None:
                rows[f"{label(row['key'])} ({cell['difference']['seeds']} seeds)"] = cell["difference"]
        if rows:
            said = f"Each method minus {table['baseline']}, paired over seeds, with its 95 % interval; hollow: within noise."
            figure = method_differences_figure(rows, column["title"])
            drawings.append(drawing(f"differences-{index}", column["title"], said, figure))
    return drawings


def slopes_of(table: dict[str, Any]) -> list[Drawing]:
    """Where a study has several configurations: each from the baseline to the method that comes last, for the first column."""
    if len(table["axes"]) < 2 or "method" not in table["axes"] or table["baseline"] is None:
        return []
    axis, lines = table["axes"].index("method"), []
    by_configuration: dict[tuple[str, ...], dict[str, float]] = {}
    for row in table["rows"]:
        if row["cells"] and row["cells"][0]:
            others = tuple(part for number, part in enumerate(row["key"]) if number != axis)
            by_configuration.setdefault(others, {})[row["key"][axis]] = row["cells"][0]["mean"]
    for others, methods in by_configuration.items():
        last = next((name for name in reversed(methods) if name != table["baseline"]), None)
        if table["baseline"] in methods and last is not None:
            lines.append((label(others), table["baseline"], methods[table["baseline"]], last, methods[last]))
    if not lines:
        return []
    said = "Every configuration of model and data, from the baseline to the last method (macs Fig. 3)."
    unit = table["columns"][0]["title"]
    return [drawing("slopes", f"{unit} by configuration", said, slopes_figure(lines, unit))]


def label(key: Sequence[str]) -> str:
    return ", ".join(key)
