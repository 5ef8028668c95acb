"""How often each method is the best over all configurations of model and data (macs 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..metrics import of_column
from .cells import Cell
from .layout import best_keys, collect
from .results import Results
from .schema import AXES


@dataclass(frozen=True)
class Wins:
    """A configuration is won alone, or tied with others at the digits that are shown."""

    metric: str
    configurations: int
    wins: dict[str, int]
    ties: dict[str, int]


def count_wins(cells: Sequence[Cell], results: Results, metric: str) -> Wins:
    """Wins and ties by the mean over seeds, in configurations where every method has a result."""
    found = collect(cells, results, AXES, metric)
    methods = list(dict.fromkeys(str(cell.labels["method"]) for cell in cells))
    place = AXES.index("method")
    by_configuration: dict[tuple[str, ...], set[str]] = {}
    for key in found:
        by_configuration.setdefault(key[:place], set()).add(key[place])
    complete = {key for key, present in by_configuration.items() if present == set(methods)}
    winners: dict[tuple[str, ...], list[str]] = {}
    for key in best_keys(found, AXES, of_column(metric)):
        if key[:place] in complete:
            winners.setdefault(key[:place], []).append(key[place])
    wins, ties = dict.fromkeys(methods, 0), dict.fromkeys(methods, 0)
    for best in winners.values():
        for method in best:
            counted = wins if len(best) == 1 else ties
            counted[method] += 1
    return Wins(metric, len(complete), wins, ties)
