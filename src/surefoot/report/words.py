"""Numbers and names as a person reads them."""

from __future__ import annotations

import math
import re
from decimal import ROUND_DOWN, Decimal
from typing import Any

from ..metrics import SHARE, facts, path_label

Audit = dict[str, Any]
ATTACKS = {"fgsm": "FGSM", "pgd": "PGD", "pgd-weak": "weak PGD", "pgd-strong": "strong PGD", "noise": "random noise"}
ATTACKS |= {"autoattack": "AutoAttack", "autoattack-weak": "weak AutoAttack", "autoattack-strong": "strong AutoAttack"}
ATTACKS |= {"apgd": "APGD", "fab": "FAB", "square": "Square", "rays": "RayS", "fast-strong": "the quick judge"}
ATTACKS |= {"sparse-weak": "weak sparse attack (L1 3)", "sparse-strong": "strong sparse attack (L1 12)"}
SPACE = "\N{NO-BREAK SPACE}"


def percent(value: float | None) -> str:
    return "not defined" if value is None else f"{100 * value:.1f}{SPACE}%"


def few_percent(share: float) -> str:
    """A share that may be far below a per cent, with the digits that count."""
    return f"{100 * share:.3g}{SPACE}%"


def rounded(share: float) -> str:
    """A share as a whole percentage, none below 0."""
    return f"{100 * max(share, 0.0):.0f}{SPACE}%"


def points(value: float) -> str:
    return f"{100 * value:.1f}{SPACE}points"


def short(value: float | None) -> str:
    """A number of no known unit, with four digits that count."""
    return "not defined" if value is None else f"{value:.4g}"


def threshold(confidence: float) -> str:
    """A bound of confidence, cut and not rounded up, with more digits the closer it is to 1; none above 1."""
    if confidence > 1:
        return "none"
    digits = 4 if confidence == 1 else max(4, 1 - math.floor(math.log10(1 - confidence)))
    cut = Decimal(repr(confidence)).quantize(Decimal(1).scaleb(-digits), ROUND_DOWN)
    return f"{cut:f}".rstrip("0").rstrip(".")


def spoken(name: str) -> str:
    """A corruption's name in words: `down_up_sampling+stripes` is down up sampling and stripes."""
    return name.replace("+", " and ").replace("_", " ")


def attack_name(name: str) -> str:
    """An attack as a label; one of the user's own is called as it is."""
    return ATTACKS.get(name) or patch_name(name) or name


def the_attack(name: str) -> str:
    """An attack in a sentence."""
    patch = patch_name(name)
    return ATTACKS.get(name) or (f"a {patch}" if patch else f"the attack {name}")


def patch_name(name: str) -> str | None:
    """`patch-5` and `grey-patch-5`: of 5 % of the picture; None for another attack."""
    named = re.fullmatch(r"(grey-)?patch-([\d.]+)", name)
    return named and f"{'grey' if named[1] else 'trained'} patch of {named[2]}{SPACE}% of the picture"


def capital(sentence: str) -> str:
    """The sentence with a capital first letter; the others stay as they are."""
    return sentence[:1].upper() + sentence[1:]


def measure(path: str) -> str:
    """The label of a number of an audit, with the name of an attack as people write it: FGSM success."""
    part, *rest = path.split(".")
    if part == "attacks" and len(rest) > 1:  # the name of one's own attack may have dots
        return f"{attack_name('.'.join(rest[:-1]))} {facts(path).label}"
    return path_label(path)


def change(path: str, value: float) -> str:
    """A difference with its sign: in points where the number is a share."""
    return f"{100 * value:+z.1f}" if facts(path).unit == SHARE else f"{value:+z.3f}"
