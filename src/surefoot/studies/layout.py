"""From the results of cells to the rows and columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..errors import nearest
from ..metrics import NEITHER, UP, Metric, of_column
from ..notebooks import html_table
from .cells import Cell
from .results import Results, Snapshot
from .schema import AXES, Study
from .settings import in_brackets, setting_of
from .statistics import Difference, Spread, paired_difference, spread

Key = tuple[str, ...]
AVERAGE = "average"


@dataclass(frozen=True)
class Entry:
    """One number of the table, in the unit that is shown."""

    spread: Spread
    difference: Difference | None = None  # from the baseline of the same configuration
    best: bool = False
    published: tuple[float, float | None] | None = None  # the paper's mean and deviation, where the setting is the same


@dataclass(frozen=True)
class Column:
    """A metric, perhaps at one label of the axis that was moved into the columns."""

    metric: Metric
    name: str
    across: str | None = None

    @property
    def title(self) -> str:
        shown = f"{self.metric.title} {self.metric.arrow}".strip()
        return shown if self.across is None else f"{self.across}: {shown}"

    def full_key(self, key: Key) -> Key:
        """The labels of the number in this column and in the row of `key`."""
        return key if self.across is None else (*key, self.across)


@dataclass(frozen=True)
class Table:
    """Rows by their labels, one entry (or None) for each column."""

    title: str
    axes: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: dict[Key, list[Entry | None]]
    baseline: str | None
    finished: int
    cells: int
    left_out: tuple[str, ...] = ()  # columns that no cell has: a smaller scale leaves some out
    differs: str | None = None  # the paper's setting from ours
    undefined: tuple[str, ...] = ()  # metrics that are not finite in some cell, as after a training that diverged
    setting: tuple[str, ...] = ()  # what was trained and measured, in words

    def _repr_html_(self) -> str:
        """What a notebook shows: the table as Markdown has it."""
        from .table_formats import cell, notes

        head = [*self.axes, *(column.title for column in self.columns)]
        cells = {
            key: [cell(entry, column.metric).replace("**", "") for entry, column in zip(entries, self.columns, strict=True)]
            for key, entries in self.rows.items()
        }
        return html_table(self.title, head, [[*key, *shown] for key, shown in cells.items()], notes(self))


def build_table(study: Study, cells: Sequence[Cell], results: Results, whole: Sequence[Cell] = ()) -> Table:
    """Mean, deviation and paired differences for every row; the best of each configuration is marked.

    The baseline is looked for in the `whole` study, of which `cells` may be a part.
    """
    results, across = Snapshot(results), study.table.across
    axes = tuple(axis for axis in AXES if axis != across and (axis == "method" or varies(cells, axis)))
    every = axes if across is None else (*axes, across)  # what names a number, in a row and a column
    labels_across = list(dict.fromkeys(str(cell.labels[across]) for cell in cells)) if across else [None]
    names = study.table.columns or default_columns(study, cells, results)
    over = study.table.average if study.table.average in axes else None
    values = {name: with_averages(collect(cells, results, every, name), every, over) for name in names}
    shared = {axis: label for axis, label in cells[0].labels.items() if axis not in every}  # by all cells, not by the whole
    beside = [cell for cell in whole or cells if all(cell.labels[axis] == label for axis, label in shared.items())]
    bases = {name: with_averages(collect(beside, results, every, name), every, over) for name in names}
    best = {name: best_keys(values[name], every, of_column(name)) for name in names}
    keys = list(dict.fromkeys(key_of(cell, axes) for cell in cells))
    keys += [] if over is None else list(dict.fromkeys(with_label(key, axes, over, AVERAGE) for key in keys))
    wanted = tuple(Column(of_column(name), name, label) for label in labels_across for name in names)
    columns = tuple(each for each in wanted if any(each.full_key(key) in values[each.name] for key in keys)) or wanted
    common = {axis: str(label) for axis, label in cells[0].labels.items()}  # where an axis does not vary
    rows: dict[Key, list[Entry | None]] = {key: [] for key in keys}
    for column in columns:
        by_key = values[column.name]
        for key in keys:
            full_key = column.full_key(key)
            mine = by_key.get(full_key)
            reference = with_label(full_key, every, "method", study.baseline) if study.baseline else full_key
            base = bases[column.name].get(reference) if reference != full_key else None
            difference = paired_difference(mine, base) if mine and base else None
            labels = common | dict(zip(every, full_key, strict=True))
            said = published_for(study, labels, column.name) if in_brackets(study, column.name) else None
            rows[key].append(
                Entry(spread(list(mine.values())), difference, full_key in best[column.name], said) if mine else None
            )
    done = sum(not results.missing(cell) for cell in cells)
    undefined = tuple(name for name in names if any(is_undefined(results, cell, name) for cell in cells))
    known = default_columns(study, cells, results)
    left_out = tuple(dict.fromkeys(with_nearest(each.name, known) for each in wanted if each not in columns))
    return Table(
        title=" ".join(study.title.split()),
        axes=axes,
        columns=columns,
        rows=rows,
        baseline=study.baseline,
        finished=done,
        cells=len(cells),
        left_out=left_out,
        differs=study.differs,
        undefined=undefined,
        setting=setting_of(cells, results),
    )


def with_nearest(name: str, known: Iterable[str]) -> str:
    """A metric that no cell has, and what may have been meant where its measurement knows no such word."""
    label, kind, *_ = [*name.split("."), ""]
    kinds = {other.split(".")[1] for other in known if other.startswith(f"{label}.")}
    near = None if kind in kinds else nearest(kind, kinds)
    return f"{name} (did you mean {label}.{near}?)" if near else name


def varies(cells: Sequence[Cell], axis: str) -> bool:
    return len({cell.labels[axis] for cell in cells}) > 1


def key_of(cell: Cell, axes: Sequence[str]) -> Key:
    return tuple(str(cell.labels[axis]) for axis in axes)


def with_label(key: Key, axes: Sequence[str], wanted: str, new: str) -> Key:
    """The key with another label on one axis: of another method, say, in the same configuration."""
    return tuple(new if axis == wanted else label for axis, label in zip(axes, key, strict=True))


def with_averages(by_key: dict[Key, dict[int, float]], axes: Sequence[str], over: str | None) -> dict[Key, dict[int, float]]:
    """The values, and under the label "average" their means over an axis, seed by seed, where every label of it has one."""
    if over is None:
        return by_key
    count = len({key[list(axes).index(over)] for key in by_key})
    groups: dict[Key, list[dict[int, float]]] = {}
    for key, values in by_key.items():
        groups.setdefault(with_label(key, axes, over, AVERAGE), []).append(values)
    means = {}
    for key, members in groups.items():
        seeds = set.intersection(*map(set, members)) if len(members) == count else set()
        if seeds:
            means[key] = {seed: fmean(values[seed] for values in members) for seed in sorted(seeds)}
    return by_key | means


def collect(cells: Sequence[Cell], results: Results, axes: Sequence[str], name: str) -> dict[Key, dict[int, float]]:
    """The values of one metric: labels on the axes to seed to value, in the unit that is shown."""
    out: dict[Key, dict[int, float]] = {}
    for cell in cells:
        value = value_of(results, cell, name, None)
        if value is not None:
            out.setdefault(key_of(cell, axes), {})[cell.seed] = value * of_column(name).factor
    return out


def is_undefined(results: Results, cell: Cell, name: str) -> bool:
    """Whether a metric was measured and is no finite number."""
    return value_of(results, cell, name, 0.0) is None


def value_of(results: Results, cell: Cell, name: str, unmeasured: float | None) -> float | None:
    """A metric of a cell. `cost.epochs`, what the whole training costs, follows from the cost of a step."""
    label, _, metric = name.partition(".")
    measured = results.metrics(cell, label) or {}
    if name == "cost.epochs" and (relative := measured.get("relative")) is not None:
        return relative * float(cell.recipe.training["epochs"])
    return measured.get(metric, unmeasured)


def best_keys(by_key: dict[Key, dict[int, float]], axes: Sequence[str], metric: Metric) -> set[Key]:
    """The best row of each configuration, as far as the shown digits tell; none where there is nothing to compare."""
    if metric.better == NEITHER or "method" not in axes:
        return set()
    axis = list(axes).index("method")
    groups: dict[Key, dict[Key, float]] = {}
    for key, values in by_key.items():
        mean = round(spread(list(values.values())).mean, metric.digits)
        groups.setdefault((*key[:axis], *key[axis + 1 :]), {})[key] = mean
    out = set()
    for group in groups.values():
        top = (max if metric.better == UP else min)(group.values())
        out |= {key for key, mean in group.items() if mean == top and len(group) > 1}
    return out


def published_for(study: Study, labels: Mapping[str, str], name: str) -> tuple[float, float | None] | None:
    """The paper's own figure for a metric in a cell of the grid."""
    for row in study.published:
        if name in row and all(str(row[axis]) == label for axis, label in labels.items() if axis in row):
            return as_pair(row[name])
    return None


def as_pair(value: object) -> tuple[float, float | None]:
    """`87.6` or `[87.6, 0.5]`: mean and deviation."""
    if isinstance(value, (list, tuple)):
        return float(value[0]), float(value[1])
    return float(str(value)), None


def default_columns(study: Study, cells: Sequence[Cell], results: Results) -> tuple[str, ...]:
    """Everything that was measured, in the order of the study."""
    names: dict[str, None] = {}
    for label in study.measure:
        for cell in cells:
            names |= dict.fromkeys(f"{label}.{name}" for name in results.metrics(cell, label) or {})
    return tuple(names)


# How often each method is the best over all configurations of model and data (macs 5.2).


@dataclass(frozen=True)
class Wins:
    """A configuration is won alone, or tied with others at the digits that are shown."""

    metric: str
    configurations: int
    wins: dict[str, int]
    ties: dict[str, int]


def count_wins(cells: Sequence[Cell], results: Results, metric: str) -> Wins:
    """Wins and ties by the mean over seeds, in configurations where every method has a result."""
    values = collect(cells, results, AXES, metric)
    methods = list(dict.fromkeys(str(cell.labels["method"]) for cell in cells))
    axis = AXES.index("method")
    by_configuration: dict[tuple[str, ...], set[str]] = {}
    for key in values:
        by_configuration.setdefault(key[:axis], set()).add(key[axis])
    complete = {key for key, present in by_configuration.items() if present == set(methods)}
    winners: dict[tuple[str, ...], list[str]] = {}
    for key in best_keys(values, AXES, of_column(metric)):
        if key[:axis] in complete:
            winners.setdefault(key[:axis], []).append(key[axis])
    wins, ties = dict.fromkeys(methods, 0), dict.fromkeys(methods, 0)
    for best in winners.values():
        for method in best:
            counted = wins if len(best) == 1 else ties
            counted[method] += 1
    return Wins(metric, len(complete), wins, ties)
