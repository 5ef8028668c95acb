"""Hyper-parameters: a grid or random draws over the constructor arguments of any objective, chosen on validation only."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any

from ..errors import SurefootError, UnknownName, require
from ..metrics import UP, of_column
from ..objectives.methods import build_objective, load_method
from ..schemas import check_options, defaults_of
from ..seeds import derive
from .cells import Cell
from .layout import collect
from .results import Results
from .schema import AXES, Study

FACTOR = 4.0  # how far random draws go from a default, where no range is given


def grid_methods(objective: str, grid: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Every combination of the values, as methods of a study."""
    check_arguments(objective, grid)
    combinations = product(*grid.values())
    return dict(method(objective, dict(zip(grid, values, strict=True))) for values in combinations)


def random_methods(objective: str, grid: Mapping[str, Sequence[Any]], count: int, seed: int = 0) -> dict[str, Any]:
    """So many random points: uniform over the given values, log-uniform within a factor of 4 of other positive defaults.

    Given values alone make draws from the grid; nothing given searches every positive number of the constructor. Points that
    the constructor refuses are drawn again.
    """
    require(count >= 1, "random", "at least 1", count)
    check_arguments(objective, grid)
    free = {} if grid else searchable(objective)
    require(bool(grid or free), "objective", "one with numbers to search", objective)
    draws = random.Random(derive(seed, objective, "search"))
    methods: dict[str, Any] = {}
    for _ in range(100 * count):
        point = {name: draws.choice(list(values)) for name, values in grid.items()}
        point |= {name: float(f"{value * FACTOR ** draws.uniform(-1, 1):.3g}") for name, value in free.items()}
        label, section = method(objective, point)
        if fits(objective, point):
            methods[label] = section
        if len(methods) == count:
            break
    require(bool(methods), "grid", f"values that {objective} takes", dict(grid))
    return methods


def fits(objective: str, point: Mapping[str, Any]) -> bool:
    """Whether the constructor takes these values together."""
    try:
        build_objective(objective, dict(point))
    except SurefootError:
        return False
    return True


def searchable(objective: str) -> dict[str, float]:
    """The arguments of a constructor that are positive numbers by default."""
    defaults = defaults_of(load_method(objective))
    return {name: value for name, value in defaults.items() if isinstance(value, float) and value > 0}


def check_arguments(objective: str, grid: Mapping[str, Sequence[Any]]) -> None:
    """Every name is an argument of the objective, and every value fits."""
    target = load_method(objective)
    known = defaults_of(target)
    for name, values in grid.items():
        if name not in known:
            raise UnknownName(f"option of {objective}", name, known)
        for value in values:
            check_options(objective, target, {name: value})


def method(objective: str, point: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    words = " ".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in point.items())
    return f"{objective} {words}".strip(), {"name": objective, **point}


@dataclass(frozen=True)
class Choice:
    """The method with the best mean on validation, and the runners-up in order."""

    metric: str
    method: str
    options: Any
    order: tuple[tuple[str, float], ...]
    over: str  # what the means are over, in words


def choose(study: Study, cells: Sequence[Cell], results: Results) -> Choice | None:
    """The best method by the metric that the study selects on, over the configurations and seeds that all methods have.

    None while there are none.
    """
    assert study.select is not None
    by_method: dict[str, dict[tuple[Any, ...], float]] = {}
    for (*configuration, method), values in collect(cells, results, AXES, study.select).items():
        for seed, value in values.items():
            by_method.setdefault(method, {})[*configuration, seed] = value
    shared = set.intersection(*map(set, by_method.values())) if by_method else set()
    if not shared:
        return None
    means = {method: fmean(values[key] for key in shared) for method, values in by_method.items()}
    order = sorted(means.items(), key=lambda item: item[1], reverse=of_column(study.select).better == UP)
    seeds, configurations = len({key[-1] for key in shared}), len({key[:-1] for key in shared})
    over = "one seed, which cannot tell it from noise" if seeds == 1 else f"mean over {seeds} seeds"
    over += f" and {configurations} configurations" if configurations > 1 else ""
    return Choice(study.select, order[0][0], study.methods[order[0][0]], tuple(order), over)
