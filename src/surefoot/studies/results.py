"""One small file for each cell: its recipe and every measurement that is finished, so that nothing is computed twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import NotFound, SurefootError
from ..files import inside, read_json, write_json, write_text
from ..plain import plain
from .engines import Measure

if TYPE_CHECKING:
    from .cells import Cell

CELLS, POINTS = "cells", "points"
Record = dict[str, Any]
Metrics = dict[str, float | None]


class Results:
    """The folder of finished cells: `cells/<hash>.json`, safe to commit and to go on from elsewhere."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, cell: str) -> Path:
        return self.folder / CELLS / f"{cell}.json"

    def read(self, cell: str) -> Record:
        path = self.path(cell)
        record: Record = read_json("cell", path) if path.is_file() else {}
        if not whole_record(record):
            raise SurefootError(f"'{path}' is not the whole record of a cell: remove it, and it is computed again.")
        return record

    def measured(self, cell: Cell) -> dict[str, Metrics]:
        """Every measurement that is finished, by its label; what was done under other defaults than today's does not count."""
        from .cells import whole

        record = self.read(cell.name)
        if not record.get("measurements") or not same_recipe(record["recipe"], plain(whole(cell.recipe, cell.trained))):
            return {}
        done = {label: record["measurements"].get(cell.measure_name(label)) for label in cell.measure}
        same = {label: each for label, each in done.items() if each and agree(each["options"], plain(cell.measure[label][1]))}
        return {label: each["metrics"] for label, each in same.items()}

    def metrics(self, cell: Cell, label: str) -> Metrics | None:
        """What was measured, or None if it has not been."""
        return self.measured(cell).get(label)

    def missing(self, cell: Cell) -> list[str]:
        """The labels of the measurements that are left to do, those whose points a figure lacks among them."""
        done = self.measured(cell)
        drawn = {label for label in done if label not in cell.drawn or self.has_points(cell, label)}
        return [label for label in cell.measure if label not in drawn]

    def points(self, cell: Cell, label: str) -> dict[str, Any] | None:
        """What the figures of a measurement draw, or None if it was not kept."""
        if label not in self.measured(cell) or not self.has_points(cell, label):
            return None
        points: dict[str, Any] = read_json("points", self.points_path(cell.measure_name(label)))
        return points

    def points_path(self, name: str) -> Path:
        return self.folder / POINTS / f"{name}.json"

    def has_points(self, cell: Cell, label: str) -> bool:
        return self.points_path(cell.measure_name(label)).is_file()

    def begin(self, cell: str, recipe: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """Make the file of a cell, or bring its recipe up to date; what was found with another recipe is dropped."""
        record = self.read(cell)
        kept = record if same_recipe(record.get("recipe", {}), plain(recipe)) else {}
        fresh = {"recipe": recipe, **about}
        self._write(cell, plain({**fresh, "measurements": {}, **kept, **fresh}))

    def add(self, cell: str, name: str, measure: Measure, metrics: Mapping[str, float], about: Mapping[str, Any]) -> None:
        """Put one finished measurement into the file of its cell."""
        record = self.read(cell)
        entry = {"measurement": measure[0], "options": measure[1], "metrics": metrics, **about}
        record["measurements"][name] = plain(entry)
        self._write(cell, record)

    def add_points(self, name: str, figures: Mapping[str, Any]) -> None:
        """Keep what the figures of a measurement draw, beside the cells, whose files stay small."""
        inside(self.folder, POINTS)
        write_text(self.points_path(name), json.dumps(plain(figures), separators=(",", ":"), allow_nan=False))

    def add_training(self, cell: str, about: Mapping[str, Any]) -> None:
        record = self.read(cell)
        self._write(cell, {**record, "training": plain(about)})

    def add_setting(self, cell: str, about: Mapping[str, Any]) -> None:
        """What the data and the machine decided: sizes, numbers of images, precision."""
        record = self.read(cell)
        self._write(cell, {**record, "setting": plain(about)})

    def _write(self, cell: str, record: Record) -> None:
        inside(self.folder, CELLS)
        write_json(self.path(cell), record)


def whole_record(record: Any) -> bool:
    """Whether a file holds what a cell's does: measurements with their options and numbers."""
    if not isinstance(record, dict) or not isinstance(record.get("recipe", {}), dict):
        return False
    measurements = record.get("measurements", {})
    return isinstance(measurements, dict) and all(map(whole_entry, measurements.values()))


def whole_entry(entry: Any) -> bool:
    if not (isinstance(entry, dict) and isinstance(entry.get("options"), dict) and isinstance(entry.get("metrics"), dict)):
        return False
    return all(isinstance(value, int | float | None) for value in entry["metrics"].values())


class Snapshot(Results):
    """Results as they are now: the file of a cell is read once, however many columns a table has."""

    def __init__(self, results: Results) -> None:
        super().__init__(results.folder)
        self._kept: dict[tuple[str, ...], dict[str, Metrics]] = {}

    def measured(self, cell: Cell) -> dict[str, Metrics]:
        key = (cell.name, *cell.measure)
        if key not in self._kept:
            self._kept[key] = super().measured(cell)
        return self._kept[key]


def same_recipe(recorded: Mapping[str, Any], today: Mapping[str, Any]) -> bool:
    """Whether a recipe is still the one that was recorded; an option that its method no longer has says that it is not."""
    gone = recorded.get("objective", {}).keys() - today.get("objective", {}).keys()
    return not gone and agree(recorded, today)


def agree(one: Any, two: Any) -> bool:
    """Whether two mappings say the same about everything that both speak of."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return all(agree(one[key], two[key]) for key in one.keys() & two.keys())
    return bool(one == two)


def require_results(folder: str | Path) -> Results:
    if not Path(folder).is_dir():
        raise NotFound("folder of results", folder)
    return Results(folder)
