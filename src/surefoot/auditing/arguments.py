"""What may be asked of an audit beside its depth: engines, times, names to measure; known without torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..attacks.table import ATTACKS
from ..corruptions.arguments import check_corruptions
from ..errors import SurefootError, UnknownName, require
from ..measurements.registry import MEASUREMENTS

AUDIT = "audit.json"
ENGINES = ("local", "ray")
PICTURES = "pictures"  # they go with the corruptions
PART_NAMES = ("corruptions", "noise", "occlusions", "attacks", "geometry")
QUICK = 120.0  # seconds that a quick audit may take on the command line
UNITS = {"s": 1, "m": 60, "h": 3600}


def check_audited(folder: Path) -> None:
    """That a folder has the audit which new pictures are compared with."""
    if not (folder / AUDIT).is_file():
        raise SurefootError(f"'{folder}' has no {AUDIT}, which new pictures are compared with: surefoot audit writes it.")


def check_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES)


def check_risks(risks: Iterable[float]) -> None:
    for risk in risks:
        require(0 < risk < 1, "risks", "between 0 and 1", risk)


def check_names(attacks: Iterable[str] = (), corruptions: Iterable[str] = (), measure: Iterable[str] = ()) -> None:
    """Refuse unknown names of what is to be measured beyond the depth."""
    for name in attacks:
        ATTACKS.check(name)
    check_corruptions(corruptions)
    for name in measure:
        MEASUREMENTS.check(name)


def check_parts(labels: Iterable[str], skip: Sequence[str], only: Sequence[str]) -> None:
    """Refuse what is neither a part of the page nor the label of a measurement, and both at once."""
    if skip and only:
        raise SurefootError("skip and only exclude each other: give one of them (--skip, --only).")
    known = [*PART_NAMES, *(label for label in labels if label not in (*PART_NAMES, PICTURES))]
    for what, given in (("skip", skip), ("only", only)):
        if isinstance(given, str):
            raise SurefootError(f"{what} must be a list of names, got '{given}'.")
        for name in given:
            if name not in known:
                raise UnknownName(f"part of the audit ({what})", name, known)


def parse_time(text: str) -> float:
    """`90s`, `10m` or `1.5h` in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip().lower())
    if match is None or float(match[1]) == 0:
        raise SurefootError(f"--time must be a number with s, m or h, such as 90s or 10m, got '{text}'.")
    return float(match[1]) * UNITS[match[2]]
