"""Another order of the classes: a file that says which name has which number."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from ..errors import NotFound, SurefootError, UnknownName


def read_class_map(path: str | Path) -> tuple[str, ...]:
    """Class names in order: one a line, `name,number` lines, or JSON (a list, or names to numbers)."""
    path = Path(path)
    if not path.is_file():
        raise NotFound("class map", path)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise SurefootError(f"Class map '{path}' is not valid JSON: {error}.") from error
        pairs = list(content.items()) if isinstance(content, dict) else [(str(name), k) for k, name in enumerate(content)]
    else:
        rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
        numbered = bool(rows) and all(len(row) == 2 and row[1].isdigit() for row in rows)
        pairs = [(row[0], int(row[1])) for row in rows] if numbered else [(",".join(row), k) for k, row in enumerate(rows)]
    names = dict(sorted(((number, name) for name, number in pairs), key=lambda pair: pair[0]))
    if len(names) != len(pairs) or len({name for name, _ in pairs}) != len(pairs) or list(names) != list(range(len(names))):
        raise SurefootError(f"Class map '{path}' must give each class its own number from 0 to {len(pairs) - 1}.")
    return tuple(names.values())


def number_classes(found: Sequence[str], class_map: str | Path | None) -> dict[str, int]:
    """The number of each class name: sorted names, or the order of the class map, which must hold them all."""
    if class_map is None:
        return {name: number for number, name in enumerate(sorted(found))}
    names = read_class_map(class_map)
    for name in found:
        if name not in names:
            raise UnknownName("class (it is not in the class map)", name, names)
    return {name: number for number, name in enumerate(names)}
