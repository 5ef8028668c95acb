"""What to do about an audit, with the numbers that say why."""

from __future__ import annotations

from typing import Any

from ..intervals import wilson
from .verdict import (
    better_than_chance,
    calibrated,
    clean_beside,
    is_fatal,
    misjudged,
    one_sided,
    side,
    strongest_attack,
    temperatures,
    without_looking,
    worst_corruption,
    worst_family,
)
from .words import Audit, capital, few_percent, percent, points, rounded, spoken, the_attack, threshold

DROP = 0.1  # of accuracy, from which a family is worth training for
ATTACKED = 0.5  # success rate from which a model should not be trusted among enemies
ENOUGH = 0.5  # share of ECE that a calibrator must remove to be worth it
REMEDIES = {
    "noise": "train with MaCS or MAGNMA",
    "blur": "train with MaCS or MAGNMA",
    "weather": "train with AugMix, or with MaCS and AugMix together",
    "digital": "train with AugMix, or with MaCS and AugMix together",
}
SEVERITIES = ("fatal", "warning", "note")
NOTHING = "Nothing urgent at this depth of audit."


def advice(audit: Audit) -> list[str]:
    """What to do, where something is worth doing; the cheapest first."""
    if is_fatal(audit):  # a temperature or a threshold would hide it
        return [
            f"{line['message']} {line['advice']} Then audit again." for line in warnings(audit) if line["severity"] == "fatal"
        ]
    if not better_than_chance(audit):  # nothing that it says is worth scaling, trusting or training further
        return chance_advice(audit)
    todo = [*calibration_advice(audit), *corruption_advice(audit), *attack_advice(audit), *class_advice(audit)]
    return [*(todo or [NOTHING]), *threshold_advice(audit)]


def chance_advice(audit: Audit) -> list[str]:
    """What to look at where a model seems to know nothing."""
    return [
        f"Its predictions are not clearly better than {without_looking(audit)}: look first "
        "whether the weights, the order of the classes and the scaling of the pixels are right."
    ]


def calibration_advice(audit: Audit) -> list[str]:
    """Whether a temperature mends the confidence, and by how much."""
    if calibrated(audit):
        return []
    scores, scaling = audit["calibration"], audit.get("temperature")
    gap = capital(misjudged(audit))
    if not scaling and not one_sided(audit):
        return [f"{gap}: a temperature moves all confidences one way, so try surefoot calibrate --method vector or isotonic."]
    if not scaling:
        way = "greater" if side(audit) == "overconfident" else "less"
        return [f"{gap}: divide the logits by a temperature {way} than 1, fitted on a calibration split."]
    before, after = scores["ece"]["value"], scaling["calibration"]["ece"]["value"]
    fixed = (before - after) / before
    name = f"temperature {temperatures(audit)}"
    if percent(after) == percent(before) or fixed < 0:
        return [f"{gap}, and a temperature does not mend it: try surefoot calibrate --method vector or isotonic."]
    if fixed < ENOUGH:
        return [f"{gap}, and {name} fixes only {rounded(fixed)} of it: try surefoot calibrate --method vector or isotonic."]
    said = (
        f"{gap}: {name} fixes {rounded(fixed)} of it at no cost (ECE {percent(before)} to {percent(after)}, same predictions)."
    )
    worse, band = scaling.get("corrupted_scaled_ece"), (audit.get("corruptions") or {}).get("scaled_ece_if_calibrated")
    if worse is not None and worse["value"] > max(2 * after, band[1] if band else 0):
        beside = f", where perfect calibration would show at most {percent(band[1])}" if band else ""
        said += f" On corrupted pictures {percent(worse['value'])} remain{beside}: do not lean on its confidence there."
    return [said]


def corruption_advice(audit: Audit) -> list[str]:
    """The families that cost most, and a corruption that stands out."""
    if not audit.get("corruptions"):
        return []
    clean, families = clean_beside(audit), audit["corruptions"]["families"]
    drops = {name: clean - scores["accuracy"]["value"] for name, scores in families.items()}
    todo = [
        f"Loses {points(drop)} on {name}: {REMEDIES.get(name, 'show the model such pictures in training')}."
        for name, drop in sorted(drops.items(), key=lambda pair: -pair[1])
        if drop > DROP
    ]
    name, drop = worst_corruption(audit)
    family = worst_family(audit)
    if drop > (family[1] if family else 0) + DROP:
        todo.append(f"{spoken(name).capitalize()} alone costs {points(drop)}: look at its pictures in the table below.")
    return todo


def attack_advice(audit: Audit) -> list[str]:
    """Whether to trust it among people who mean harm."""
    name = strongest_attack(audit)
    rate = audit["attacks"][name]["success_rate"]["value"] if name else 0.0
    if name is None or rate <= ATTACKED:
        return []
    return [
        f"{capital(the_attack(name))} breaks {percent(rate)} of its right predictions: do not rely on it where someone may "
        "tamper with the pictures, or train with TRADES or adversarial training."
    ]


def class_advice(audit: Audit) -> list[str]:
    """The class that is recognised least, where it is surely worse than the rest, however many classes were looked at."""
    low = audit["calibration"]["accuracy"]["low"]
    rows = [row for row in audit.get("classes", ()) if row["accuracy"] is not None]
    weak = [row for row in rows if highest(row, len(rows)) < low]
    if not weak:
        return []
    worst = min(weak, key=lambda row: row["accuracy"]["value"])
    mixed = f", most often taken for '{worst['taken_for']}'" if worst["taken_for"] is not None else ""
    more = f" ({len(weak)} classes are clearly below the rest)" if len(weak) > 1 else ""
    return [
        f"Class '{worst['name']}' is recognised in only {percent(worst['accuracy']['value'])} of cases{mixed}: "
        f"collect more of it or look at its labels{more}."
    ]


def highest(row: dict[str, Any], several: int) -> float:
    """How often a class may be recognised at most, as one of several."""
    return wilson(round(row["accuracy"]["value"] * row["images"]), row["images"], several)["high"]


def threshold_advice(audit: Audit) -> list[str]:
    """The strictest threshold that leaves at least half of the images to the model; or that none can be promised."""
    rows = sorted(audit.get("thresholds", ()), key=lambda row: row["wanted_risk"])
    for row in rows:
        if row["coverage"]["value"] >= ENOUGH and row["risk"]["value"] is not None:
            return [f"{threshold_words(row)} Ask a person for the rest."]
    nothing = [row for row in rows if row.get("notes") and not row["coverage"]["value"]]
    return [threshold_words(nothing[-1])] if rows and len(nothing) == len(rows) else []


def threshold_words(row: Audit) -> str:
    """What a threshold does, as a sentence."""
    if not row["coverage"]["value"] and row.get("notes"):
        return str(row["notes"][0])
    if not row["coverage"]["value"]:
        return f"No confidence is high enough for an error rate of {few_percent(row['wanted_risk'])}."
    if row.get("deploy") is not None:
        bound = f"{threshold(row['deploy'])} confidence on"
    else:
        usable = [threshold(value) for value in row["thresholds"] if value <= 1]
        missing = "" if len(usable) == len(row["thresholds"]) else " (none holds for the other half)"
        bound = f"{' or '.join(dict.fromkeys(usable))} confidence on{missing}"
    decided, wrong = percent(row["coverage"]["value"]), percent(row["risk"]["value"])
    said = f"Let it decide by itself from {bound}: that is {decided} of the images, {wrong} of them wrong."
    if row["risk"]["value"] > row["wanted_risk"]:
        said += (
            f" That is more than the {few_percent(row['wanted_risk'])} that were wanted: on these images the wish is not met."
        )
    if row.get("confidence") is None:  # audits of older versions observed a threshold and promised nothing
        return said
    return f"{said} At most {few_percent(row['wanted_risk'])} are promised, with probability {rounded(row['confidence'])}."


def warnings(audit: Audit) -> list[dict[str, str]]:
    """What makes the numbers doubtful: findings before the audit, the worst first, and signs that attacks were misled."""
    lines = [{"severity": "warning", **finding} for finding in audit.get("preflight", ())]
    lines += [{"severity": "warning", "message": "About the attacks:", "advice": line} for line in audit.get("masking", ())]
    return sorted(lines, key=lambda line: SEVERITIES.index(line["severity"]))
