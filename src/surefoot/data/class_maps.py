"""Another order of the classes: a file that says which name has which number."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import SurefootError, UnknownName
from ..files import read_json, read_text


def read_class_map(path: str | Path) -> tuple[str, ...]:
    """Class names in order: one a line, `name,number` lines, or JSON (a list, or names to numbers)."""
    path = Path(path)
    if path.suffix == ".json":
        pairs = pairs_in(read_json("class map", path), path)
    else:
        lines = [line.strip() for line in read_text("class map", path).splitlines() if line.strip()]
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
        if len(rows) != len(lines):
            raise SurefootError(f"Class map '{path}' has a quotation mark that is not closed.")
        numbered = bool(rows) and all(len(row) == 2 and row[1].isdigit() for row in rows)
        names = [row[0] if len(row) == 1 else line for row, line in zip(rows, lines, strict=True)]  # with its commas
        pairs = [(row[0], int(row[1])) for row in rows] if numbered else [(name, number) for number, name in enumerate(names)]
    order = dict(sorted(((number, name) for name, number in pairs), key=lambda pair: pair[0]))
    if len(order) != len(pairs) or len({name for name, _ in pairs}) != len(pairs) or list(order) != list(range(len(order))):
        raise SurefootError(f"Class map '{path}' must give each class its own number from 0 to {len(pairs) - 1}.")
    return tuple(order.values())


def pairs_in(content: Any, path: Path) -> list[tuple[str, int]]:
    """Names and numbers from JSON."""
    if isinstance(content, list) and all(type(name) in (str, int) for name in content):
        return [(str(name), number) for number, name in enumerate(content)]
    if isinstance(content, dict) and all(type(number) is int for number in content.values()):
        return list(content.items())
    raise SurefootError(f"Class map '{path}' must be a list of names, or give each name its number.")


def number_classes(found: Sequence[str], class_map: str | Path | None) -> dict[str, int]:
    """The number of each class name: sorted names, or the order of the class map, which must hold them all."""
    if class_map is None:
        return {name: number for number, name in enumerate(sorted(found))}
    names = read_class_map(class_map)
    for name in found:
        if name not in names:
            raise UnknownName("class (it is not in the class map)", name, names)
    return {name: number for number, name in enumerate(names)}


def renumber_classes(own: Sequence[str], class_map: str | Path | None) -> tuple[tuple[str, ...], list[int]]:
    """For data that number their classes: the names in the order of the class map, and the new number of each old one."""
    if class_map is None:
        return tuple(own), list(range(len(own)))
    numbers = number_classes(own, class_map)
    return tuple(numbers), [numbers[name] for name in own]
