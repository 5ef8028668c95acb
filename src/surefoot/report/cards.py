"""The five numbers at the top of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    found = [
        card("accuracy", scores["accuracy"], "right on images as they are"),
        card("calibration error (ECE)", scores["ece"], band, "" if too_few(audit) else "good" if calibrated(audit) else "poor"),
    ]
    if "corruptions" not in audit:
        scaled = (audit.get("temperature") or {}).get("calibration")
        if scaled:
            found.append(card("ECE after temperature", scaled["ece"], "on images that the temperature has not seen"))
        value, low, high = (f"{scores['brier'][key]:.3f}" for key in ("value", "low", "high"))
        found.append(Card("Brier score", value, f"{low} to {high}", "0 is perfect; squared error of the probabilities"))
        ranks = "how well confidence tells right from wrong; 50 % is chance"
        if scores["auroc"]["value"] is None:
            answers = "right" if scores["accuracy"]["value"] else "wrong"
            return [*found, Card("AUROC of its confidence", "not defined", f"all answers are {answers}", ranks)]
        return [*found, card("AUROC of its confidence", scores["auroc"], ranks)]
    worse, clean = audit["corruptions"], scores["accuracy"]["value"]
    mean, able = worse["mean_accuracy"], better_than_chance(audit)  # what guesses does not lose by damage: that is no merit
    kinds, strengths = (len({cell[key] for cell in worse["cells"]}) for key in ("name", "severity"))
    damage = f"mean over {kinds} kinds of damage, {strengths} strengths of each"
    found.append(card("corrupted accuracy", mean, damage, tone(clean - mean["value"]) if able else ""))
    if worst := worst_family(audit):
        family, drop = worst
        accuracy = worse["families"][family]["accuracy"]
        found.append(card(f"worst family: {family}", accuracy, "accuracy on its pictures", tone(drop) if able else ""))
    if name := strongest_attack(audit):
        rate = audit["attacks"][name]["success_rate"]
        broken = f"right answers that {the_attack(name)} turns wrong"
        found.append(card("attack success", rate, broken, tone(rate["value"] / 3) if able else ""))
    return found


def card(name: str, number: dict[str, Any], meaning: str, tone: str = "") -> Card:
    return Card(name, percent(number["value"]), f"{percent(number['low'])} to {percent(number['high'])}", meaning, tone)


def tone(drop: float) -> str:
    """A loss of accuracy as good (below 5 points), fair (below 15) or poor."""
    return "good" if drop < 0.05 else "fair" if drop < 0.15 else "poor"
