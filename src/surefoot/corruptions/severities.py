"""The benchmarks' constants: for an image side and a name, five values, interpolated in between.

`severities.json` holds them by table, corruption and constant; the table is the side of the benchmark's images, or "papers"
for the corruptions of papers, whose sizes are shares of the image (there severity 4 is the paper's setting). `cbar.json` holds
the magnitudes of CIFAR-10-C-bar and ImageNet-C-bar.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from ..errors import UnknownName, require

Constants = dict[str, float]
Table = dict[str, dict[str, list[float]]]
SCALES = ("32", "64", "224")
COUNTS = frozenset({"delta", "rounds", "quality", "patches", "stripes"})  # rounded to whole numbers in between
SWITCHES = frozenset({"mud"})  # everything holds until the next severity where one of these changes


@cache
def tables() -> dict[str, Table]:
    """The constants of CIFAR-C ("32"), Tiny ImageNet-C ("64"), ImageNet-C ("224") and of "papers"."""
    content: dict[str, Table] = json.loads(files(__package__).joinpath("severities.json").read_text(encoding="utf-8"))
    return content


@cache
def cbar_tables() -> dict[str, Table]:
    """The magnitudes of CIFAR-10-C-bar ("32") and ImageNet-C-bar ("224"), and those between them ("64")."""
    content: dict[str, Table] = json.loads(files(__package__).joinpath("cbar.json").read_text(encoding="utf-8"))
    return content


def scale_for(height: int, width: int) -> str:
    """The nearest published table for an image: up to 48 px CIFAR-C's, up to 144 Tiny ImageNet-C's, else ImageNet-C's."""
    side = min(height, width)
    return "32" if side <= 48 else "64" if side <= 144 else "224"


def constants(name: str, severity: float, scale: str) -> Constants:
    """The constants of a corruption at a severity from 1 to 5, linear in between."""
    if scale not in SCALES:
        raise UnknownName("scale", scale, [*SCALES, "auto"])
    every = tables()
    table = {**every["papers"], **cbar_tables()[scale], **every[scale]}
    if name not in table:  # a function of one's own has none
        raise UnknownName("corruption", name, table)
    return between(table[name], severity)


def between(values: dict[str, list[float]], severity: float) -> Constants:
    """Five values of each constant at a severity that need not be whole; counts and switches step."""
    require(1 <= severity <= 5, "severity", "from 1 to 5", severity)
    below = min(int(severity), 4)
    share = severity - below
    if share < 1 and any(five[below - 1] != five[below] for name, five in values.items() if name in SWITCHES):
        share = 0.0
    blended = {name: five[below - 1] * (1 - share) + five[below] * share for name, five in values.items()}
    return {name: round(value) if name in COUNTS else value for name, value in blended.items()}
