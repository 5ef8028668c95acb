"""The five numbers at the top of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..metrics import find, path_label
from .verdict import better_than_chance, calibrated, strongest_attack, too_few, worst_family
from .words import Audit, percent, the_attack


@dataclass(frozen=True)
class Card:
    """A number with its interval, what it is, and whether it is good, fair or poor."""

    name: str
    value: str
    interval: str
    meaning: str
    tone: str = ""


def cards(audit: Audit) -> list[Card]:
    """Accuracy, ECE, corrupted accuracy, worst family, attack success; or what predictions alone can tell."""
    scores = audit["calibration"]
    low, high = scores["ece_if_calibrated"]
    band = f"a perfectly calibrated model would show {percent(low)} to {percent(high)} here"
    judged = "" if too_few(audit) else "good" if calibrated(audit) else "poor"
    found = [
        card(find("accuracy").label, scores["accuracy"], "right on images as they are"),
        card(f"calibration error ({find('ece').label})", scores["ece"], band, judged),
    ]
    if "corruptions" not in audit:
        scaled = (audit.get("temperature") or {}).get("calibration")
        if scaled:
            found.append(card(find("scaled_ece").label, scaled["ece"], find("scaled_ece").meaning))
        value, low, high = (f"{scores['brier'][key]:.3f}" for key in ("value", "low", "high"))
        found.append(Card(find("brier").label, value, f"{low} to {high}", find("brier").meaning))
        ranks = find("auroc")
        if scores["auroc"]["value"] is None:
            every = "right" if scores["accuracy"]["value"] else "wrong"
            return [*found, Card(ranks.label, "not defined", f"all predictions are {every}", ranks.meaning)]
        return [*found, card(ranks.label, scores["auroc"], ranks.meaning)]
    able = better_than_chance(audit)  # what guesses does not lose by damage: that is no merit
    if worse := audit.get("corruptions"):
        mean, clean = worse["mean_accuracy"], scores["accuracy"]["value"]
        kinds, strengths = (len({cell[key] for cell in worse["cells"]}) for key in ("name", "severity"))
        damage = f"mean over {kinds} kinds of damage, {strengths} strengths of each"
        found.append(card(path_label("corruptions.mean_accuracy"), mean, damage, tone(clean - mean["value"]) if able else ""))
        if worst := worst_family(audit):
            family, drop = worst
            accuracy = worse["families"][family]["accuracy"]
            found.append(card(f"worst family: {family}", accuracy, "accuracy on its pictures", tone(drop) if able else ""))
    if name := strongest_attack(audit):
        rate = audit["attacks"][name]["success_rate"]
        broken = f"right predictions that {the_attack(name)} turns wrong"
        found.append(card(f"attack {find('success_rate').label}", rate, broken, tone(rate["value"] / 3) if able else ""))
    return found


def card(name: str, number: dict[str, Any], meaning: str, tone: str = "") -> Card:
    return Card(name, percent(number["value"]), f"{percent(number['low'])} to {percent(number['high'])}", meaning, tone)


def tone(drop: float) -> str:
    """A loss of accuracy as good (below 5 points), fair (below 15) or poor."""
    return "good" if drop < 0.05 else "fair" if drop < 0.15 else "poor"
