"""A table as Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UnknownName
from ..metrics import Metric, of_column
from .layout import AVERAGE, Entry, Table, Wins, as_pair
from .schema import AXES, Study
from .settings import in_brackets
from .statistics import Difference

NOISE, UNKNOWN = "≈", "?"
SPELLED = {letter: rf"\{letter}" for letter in "&%$#_{}"}  # letters that mean something else in LaTeX
SPELLED |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
SPELLED |= {"|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}"}
SPELLED |= {"[": "{[}", "*": "{*}"}  # which \\ of the row above would take for its own


def render(table: Table, format: str) -> str:
    """The table in a format by name."""
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    return FORMATS[format](table)


def markdown(table: Table) -> str:
    """Mean ± deviation over seeds; the best bold; marked where the difference from the baseline is within noise."""
    titles = [*table.axes, *(column.title for column in table.columns)]
    lines = [f"**{table.title}**", "", line(titles), line(["---"] * len(table.axes) + ["---:"] * len(table.columns))]
    for key, entries in table.rows.items():
        shown = [cell(entry, column.metric) for entry, column in zip(entries, table.columns, strict=True)]
        lines.append(line([*key, *shown]))
    return "\n".join([*lines, "", "\n\n".join(notes(table))]) + "\n"


def line(words: list[str]) -> str:
    """A row of Markdown; a bar in a name is no border, and what looks like a tag is none."""
    return "| " + " | ".join(word.replace("|", r"\|").replace("<", "&lt;") for word in words) + " |"


def cell(entry: Entry | None, metric: Metric) -> str:
    """One number with its deviation, its mark, and the paper's figure in brackets."""
    if entry is None:
        return "-"
    value = number(entry.spread.mean, metric)
    value = f"**{value}**" if entry.best else value
    value += (
        "" if math.isnan(entry.spread.deviation) else f" ± {number(entry.spread.deviation, metric, beside=entry.spread.mean)}"
    )
    value += f" {mark}" if (mark := mark_of(entry.difference)) else ""
    return value if entry.published is None else f"{value} [paper: {pair(entry.published, metric)}]"


def mark_of(difference: Difference | None) -> str:
    """What seeds cannot tell from none, and what a single seed cannot say."""
    if difference is None or difference.within_noise is False:
        return ""
    return UNKNOWN if difference.within_noise is None else NOISE


def number(value: float, metric: Metric, sign: str = "", beside: float = 0.0) -> str:
    """With the digits of the metric; large ones, and what stands beside them, as whole numbers."""
    return f"{value:{sign}.{metric.digits}f}" if max(abs(value), abs(beside)) < 1000 else f"{value:{sign},.0f}"


def pair(published: tuple[float, float | None], metric: Metric) -> str:
    mean, deviation = published
    return number(mean, metric) + ("" if deviation is None else f" ± {number(deviation, metric, beside=mean)}")


def notes(table: Table) -> list[str]:
    """What the marks mean."""
    out = [f"{table.finished} of {table.cells} cells are finished." if table.finished < table.cells else ""]
    marks = {mark_of(entry.difference) for entries in table.rows.values() for entry in entries if entry is not None}
    if NOISE in marks:
        out.append(
            f"{NOISE}: within noise of {table.baseline} (the 95 % t interval of the difference, paired over seeds, has 0)."
        )
    if UNKNOWN in marks:
        out.append(f"{UNKNOWN}: one seed, which cannot tell a difference from noise.")
    if table.differs and any(entry and entry.published for entries in table.rows.values() for entry in entries):
        out.append(f"[paper]: {table.differs}")
    if table.undefined:
        out.append(f"Not finite in some cells, which their means leave out: {', '.join(table.undefined)}.")
    out.append(f"No cell has {', '.join(table.left_out)}." if table.left_out else "")
    return [text for text in (*out, *table.setting) if text]


def as_plain(table: Table) -> dict[str, Any]:
    """The table as plain values, for a page."""
    rows = [
        {"key": list(key), "cells": [plain_cell(e, c.metric) for e, c in zip(entries, table.columns, strict=True)]}
        for key, entries in table.rows.items()
    ]
    head = {"title": table.title, "axes": list(table.axes), "baseline": table.baseline, "notes": notes(table)}
    columns = [{"title": column.title, "name": column.name} for column in table.columns]
    return {**head, "columns": columns, "rows": rows, "finished": table.finished, "cells": table.cells}


def plain_cell(entry: Entry | None, metric: Metric) -> dict[str, Any] | None:
    """One number as values and as it is shown."""
    if entry is None:
        return None
    own, away = entry.spread, entry.difference
    between = None
    if away is not None:
        ends = {"low": away.low, "high": away.high} if away.count > 1 else {"low": None, "high": None}
        between = {"value": away.mean, **ends, "within_noise": away.within_noise, "seeds": away.count}
    deviation = None if math.isnan(own.deviation) else number(own.deviation, metric, beside=own.mean)
    return {
        "mean": own.mean,
        "shown": number(own.mean, metric),
        "spread": deviation,
        "mark": mark_of(away),
        "best": entry.best,
        "difference": between,
        "paper": None if entry.published is None else pair(entry.published, metric),
    }


def differences(table: Table) -> str:
    """A second table: each method minus the baseline, with its interval and the number of seeds that both have."""
    if table.baseline is None:
        return ""
    titles = [*table.axes, "seeds", *(column.title for column in table.columns)]
    lines = [f"**Differences from {table.baseline}, paired over seeds, with 95 % t intervals**", "", line(titles)]
    lines.append(line(["---"] * len(table.axes) + ["---:"] * (1 + len(table.columns))))
    for key, entries in table.rows.items():
        by_column = [entry.difference if entry else None for entry in entries]
        if not any(by_column):
            continue
        shown = []
        for difference, column in zip(by_column, table.columns, strict=True):
            if difference is None:
                shown.append("-")
            else:
                ends = (difference.mean, difference.low, difference.high)
                largest = max(map(abs, ends)) if difference.count > 1 else 0.0
                value, low, high = (number(end, column.metric, "+", largest) for end in ends)
                interval = f" ({low} to {high})" if difference.count > 1 else ""
                shown.append(f"{value}{interval} {mark_of(difference)}".strip())
        counts = {difference.count for difference in by_column if difference is not None}
        seeds = str(max(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
        lines.append(line([*key, seeds, *shown]))
    return "\n".join(lines) + "\n" if len(lines) > 4 else ""


def wins_text(wins: Wins) -> str:
    """Wins and ties in words."""
    name = of_column(wins.metric).title
    rows = [f"{method} {wins.wins[method]} ({wins.ties[method]} ties)" for method in wins.wins]
    count = f"{wins.configurations} configuration{'s' * (wins.configurations != 1)}"
    return f"Best {name} in so many of {count}: {', '.join(rows)}.\n" if wins.configurations else ""


def published_apart(study: Study) -> dict[str, Any] | None:
    """The paper's own figures as a table of words, where the setting is another one than ours."""
    every = dict.fromkeys(name for row in study.published for name in row if name not in AXES)
    names = [name for name in every if not in_brackets(study, name)]
    apart = [row for row in study.published if any(name in row for name in names)]
    beyond = [row for row in study.published if is_beyond(study, row)]  # rows of the paper's that our grid has not
    if not names and beyond:
        names, apart = list(every), beyond
    if not apart:
        return None
    axes = [axis for axis in AXES if any(axis in row for row in apart)]
    where = " ".join(word for word in (study.paper, study.place) if word)
    rows = []
    for row in apart:
        shown = [pair(as_pair(row[name]), of_column(name)) if name in row else "-" for name in names]
        rows.append([*(str(row.get(axis, "")) for axis in axes), *shown])
    title = f"The paper's own figures ({where}), in another setting: not to be compared with ours number by number"
    return {"title": title, "axes": axes, "columns": [of_column(name).title for name in names], "rows": rows}


def is_beyond(study: Study, row: Mapping[str, Any]) -> bool:
    """Whether a row of the paper is of no cell of the grid, and of no average over it."""
    return any(axis in row and str(row[axis]) not in labels for axis, labels in labels_of(study).items())


def labels_of(study: Study) -> dict[str, set[str]]:
    """The labels on each axis of a study, with that of its averages."""
    grid = {"data": study.data, "model": study.models, "method": study.methods, "fraction": study.fractions}
    return {axis: {*map(str, labels)} | ({AVERAGE} if study.table.average == axis else set()) for axis, labels in grid.items()}


def published_text(study: Study) -> str:
    """The paper's own figures apart from ours, as Markdown."""
    table = published_apart(study)
    if table is None:
        return ""
    head = line([*table["axes"], *table["columns"]])
    below = line(["---"] * len(table["axes"]) + ["---:"] * len(table["columns"]))
    differs = ["", f"What differs: {study.differs}"] if study.differs else []
    return "\n".join([f"**{table['title']}**", "", head, below, *map(line, table["rows"]), *differs]) + "\n"


def comma_separated(table: Table) -> str:
    """A line for each number, with everything that is known about it, unrounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    about = ["mean", "deviation", "seeds", "best", "difference", "low", "high", "within_noise", "paper"]
    writer.writerow([*table.axes, "across", "metric", *about])
    for key, entries in table.rows.items():
        for entry, column in zip(entries, table.columns, strict=True):
            if entry is not None:
                gap, said = entry.difference, entry.published
                far = ["", "", "", ""] if gap is None else [gap.mean, gap.low, gap.high, gap.within_noise]
                values = [entry.spread.mean, entry.spread.deviation, entry.spread.count, entry.best, *far]
                words = map(as_text, (*key, column.across or "", column.name))
                writer.writerow([*words, *values, "" if said is None else said[0]])
    return out.getvalue()


def as_text(name: object) -> str:
    """A name that a spreadsheet takes for text: it would run one that begins like a formula."""
    text = str(name)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def latex(table: Table) -> str:
    """A booktabs table, its notes as comments."""
    columns = "l" * len(table.axes) + "r" * len(table.columns)
    titles = [*table.axes, *(column.title for column in table.columns)]
    needs = r"Needs \usepackage{booktabs}."
    said = [f"% {' '.join(text.split())}" for text in (table.title, *notes(table), needs)]  # for a caption
    lines = [*said, rf"\begin{{tabular}}{{{columns}}}", r"\toprule", row(titles), r"\midrule"]
    for key, entries in table.rows.items():
        shown = [latex_cell(entry, column.metric) for entry, column in zip(entries, table.columns, strict=True)]
        lines.append(" & ".join([*map(escaped, key), *shown]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def row(words: list[str]) -> str:
    return " & ".join(map(escaped, words)) + r" \\"


def latex_cell(entry: Entry | None, metric: Metric) -> str:
    if entry is None:
        return "--"
    mean = number(entry.spread.mean, metric)
    mean = rf"\mathbf{{{mean}}}" if entry.best else mean
    spread = (
        ""
        if math.isnan(entry.spread.deviation)
        else rf" \pm {number(entry.spread.deviation, metric, beside=entry.spread.mean)}"
    )
    mark = mark_of(entry.difference).replace(NOISE, r"\approx")
    noise = f"^{{{mark}}}" if mark else ""
    said = "" if entry.published is None else f" [{number(entry.published[0], metric)}]"
    return f"${mean}{spread}{noise}${said}".replace(",", "{,}")


def escaped(text: str) -> str:
    """A name as LaTeX prints it."""
    plain = "".join(SPELLED.get(letter, letter) for letter in text)
    return plain.replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$").replace("≈", r"$\approx$")


FORMATS: dict[str, Callable[[Table], str]] = {"md": markdown, "csv": comma_separated, "latex": latex}
