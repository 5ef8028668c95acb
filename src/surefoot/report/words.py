"""Numbers and names as a person reads them."""

from __future__ import annotations

from typing import Any

Audit = dict[str, Any]
ATTACKS = {"fgsm": "FGSM", "pgd": "PGD", "pgd-weak": "weak PGD", "pgd-strong": "strong PGD"}
ATTACKS |= {"autoattack-weak": "weak AutoAttack", "autoattack-strong": "strong AutoAttack"}
SPACE = "\N{NO-BREAK SPACE}"


def percent(value: float | None) -> str:
    return "not defined" if value is None else f"{100 * value:.1f}{SPACE}%"


def rounded(share: float) -> str:
    """A share as a whole percentage, none below 0."""
    return f"{100 * max(share, 0.0):.0f}{SPACE}%"


def points(value: float) -> str:
    return f"{100 * value:.1f}{SPACE}points"


def short(value: float | None) -> str:
    """A number of no known unit, with four digits that count."""
    return "not defined" if value is None else f"{value:.4g}"


def spoken(name: str) -> str:
    """A corruption's name in words: `down_up_sampling+stripes` is down up sampling and stripes."""
    return name.replace("+", " and ").replace("_", " ")


def attack_name(name: str) -> str:
    return ATTACKS.get(name, name)


def capital(sentence: str) -> str:
    """The sentence with a capital first letter; the others stay as they are."""
    return sentence[:1].upper() + sentence[1:]
