"""One small file for each cell: its recipe and every measurement that is finished, so that nothing is computed twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import NotFound
from ..files import read_json, write_json
from ..plain import plain
from .cells import Cell, whole
from .jobs import Measure

Record = dict[str, Any]


class Results:
    """The folder of finished cells: `cells/<hash>.json`, safe to commit and to go on from elsewhere."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, cell: str) -> Path:
        return self.folder / "cells" / f"{cell}.json"

    def read(self, cell: str) -> Record:
        path = self.path(cell)
        record: Record = read_json("cell", path) if path.is_file() else {}
        return record

    def metrics(self, cell: Cell, label: str) -> dict[str, float | None] | None:
        """What was measured, or None if it has not been, or was under other defaults than today's."""
        record = self.read(cell.name)
        found = record.get("measurements", {}).get(cell.measure_name(label))
        if found is None or not agree(record["recipe"], plain(whole(cell.recipe, cell.trained))):
            return None
        if not agree(found["options"], plain(cell.measure[label][1])):
            return None
        metrics: dict[str, float | None] = found["metrics"]
        return metrics

    def missing(self, cell: Cell) -> list[str]:
        """The labels of the measurements that are left to do."""
        return [label for label in cell.measure if self.metrics(cell, label) is None]

    def begin(self, cell: str, recipe: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """Make the file of a cell, or bring its recipe up to date; what was found with another recipe is dropped."""
        record = self.read(cell)
        kept = record if agree(record.get("recipe", {}), plain(recipe)) else {}
        fresh = {"recipe": recipe, **about}
        write_json(self.path(cell), plain({**fresh, "measurements": {}, **kept, **fresh}))

    def add(self, cell: str, name: str, measure: Measure, metrics: Mapping[str, float], about: Mapping[str, Any]) -> None:
        """Put one finished measurement into the file of its cell."""
        record = self.read(cell)
        entry = {"measurement": measure[0], "options": measure[1], "metrics": metrics, **about}
        record["measurements"][name] = plain(entry)
        write_json(self.path(cell), record)

    def add_training(self, cell: str, about: Mapping[str, Any]) -> None:
        record = self.read(cell)
        write_json(self.path(cell), {**record, "training": plain(about)})


def agree(one: Any, two: Any) -> bool:
    """Whether two mappings say the same about everything that both speak of."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return all(agree(one[key], two[key]) for key in one.keys() & two.keys())
    return bool(one == two)


def require_results(folder: str | Path) -> Results:
    if not Path(folder).is_dir():
        raise NotFound("folder of results", folder)
    return Results(folder)
