"""Numbers and names as a person reads them."""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, Decimal
from typing import Any

Audit = dict[str, Any]
ATTACKS = {"fgsm": "FGSM", "pgd": "PGD", "pgd-weak": "weak PGD", "pgd-strong": "strong PGD", "noise": "random noise"}
ATTACKS |= {"autoattack": "AutoAttack", "autoattack-weak": "weak AutoAttack", "autoattack-strong": "strong AutoAttack"}
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
    return ATTACKS.get(name, name)


def the_attack(name: str) -> str:
    """An attack in a sentence."""
    return ATTACKS.get(name, f"the attack {name}")


def capital(sentence: str) -> str:
    """The sentence with a capital first letter; the others stay as they are."""
    return sentence[:1].upper() + sentence[1:]


SIMPLE = ("nll", "mean_nll", "brier", "aurc", "auroc")  # measures that are no shares
MEASURES = {"ece": "ECE", "adaptive_ece": "adaptive ECE", "nll": "NLL", "rms": "RMS calibration error", "brier": "Brier score"}
MEASURES |= {"aurc": "AURC", "auroc": "AUROC of spotting mistakes", "relative_mce": "mCE, relative", "success_rate": "success"}
PLACES = {"calibration": "", "temperature": "after temperature scaling", "corruptions": "on corrupted pictures"}


def measure(name: str) -> str:
    """`corruptions.mean_ece` is ECE on corrupted pictures, `attacks.fgsm.success_rate` FGSM success."""
    place, _, rest = name.partition(".")
    parts = (rest or place).split(".")
    last = parts[-1].removeprefix("mean_").removeprefix("scaled_")
    said = MEASURES.get(last, spoken(last))
    if place == "attacks" and len(parts) > 1:
        return f"{attack_name('.'.join(parts[:-1]))} {said}"
    if "scaled" in parts[-1]:
        said = f"{said} after temperature scaling"
    return f"{said} {PLACES.get(place, '')}".strip()


def change(name: str, value: float) -> str:
    """A difference with its sign: in points where the measure is a share."""
    if name.rpartition(".")[2] in SIMPLE:
        return f"{value:+.3f}"
    return f"{100 * value:+.1f}"
