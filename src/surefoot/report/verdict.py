"""An audit in plain words: what the numbers say, and what to do about them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

Audit = dict[str, Any]


def percent(value: float) -> str:
    return f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def points(value: float) -> str:
    return f"{100 * value:.1f} points"


def calibrated(audit: Audit) -> bool:
    """Whether ECE is no larger than a perfectly calibrated model would show."""
    scores = audit["calibration"]
    return bool(scores["ece"]["value"] <= scores["ece_if_calibrated"][1])


def verdict(audit: Audit) -> list[str]:
    """Sentences, the most important first."""
    scores, images = audit["calibration"], audit["subject"]["images"]
    accuracy, ece, low_high = scores["accuracy"], scores["ece"], scores["ece_if_calibrated"]
    said = [
        f"Right on {percent(accuracy['value'])} of {images:,} {audit['subject']['split']} images "
        f"(95\N{NO-BREAK SPACE}% interval {percent(accuracy['low'])} to {percent(accuracy['high'])})."
    ]
    band = f"{percent(low_high[0])} to {percent(low_high[1])}"
    if calibrated(audit):
        said.append(f"Its confidence can be believed: ECE {percent(ece['value'])}; perfect calibration would show {band} here.")
    else:
        side = "Overconfident" if scores["signed_error"]["value"] > 0 else "Underconfident"
        gap = points(abs(scores["signed_error"]["value"]))
        said.append(f"{side} by {gap}: ECE {percent(ece['value'])}, where perfect calibration would show {band}.")
    said += temperature_words(audit)
    if "corruptions" in audit:
        name, drop = worst_corruption(audit)
        mean = audit["corruptions"]["mean_accuracy"]["value"]
        words = f"on {name.replace('_', ' ')}"
        said.append(f"Corrupted pictures: {percent(mean)} right on average; it loses most {words}, {points(drop)}.")
    for attack, found in audit.get("attacks", {}).items():
        rate = found["success_rate"]["value"]
        said.append(f"{attack.upper()} turns {percent(rate)} of its right answers into wrong ones.")
    return said


def temperature_words(audit: Audit) -> list[str]:
    """What a temperature would do, and whether that lasts when the picture gets worse."""
    found = audit.get("temperature")
    if not found:
        return []
    shown = " and ".join(f"{value:.2f}" for value in found["temperatures"])
    before, after = audit["calibration"]["ece"]["value"], found["calibration"]["ece"]["value"]
    said = f"Temperature {shown} (from {found['fitted_on']}) takes ECE from {percent(before)} to {percent(after)}"
    if found.get("corrupted_ece") is not None:
        said += (
            f", and on corrupted pictures from {percent(found['corrupted_ece']['value'])} to "
            f"{percent(found['corrupted_scaled_ece']['value'])}"
        )
    return [f"{said}."]


def advice(audit: Audit) -> list[str]:
    """What to do, where something is worth doing."""
    todo = []
    if not calibrated(audit):
        way = "greater" if audit["calibration"]["signed_error"]["value"] > 0 else "less"
        todo.append(
            f"Divide the logits by a temperature {way} than 1, fitted on the calibration split; accuracy stays the same."
        )
    name, drop = worst_corruption(audit) if "corruptions" in audit else ("", 0.0)
    if drop > 0.1:
        todo.append(f"{name.replace('_', ' ').capitalize()} costs {points(drop)}: show the model such pictures in training.")
    if any(found["success_rate"]["value"] > 0.5 for found in audit.get("attacks", {}).values()):
        todo.append("Do not rely on it where someone may tamper with the pictures.")
    return todo or ["Nothing urgent at this depth of audit."]


def worst_corruption(audit: Audit) -> tuple[str, float]:
    """The corruption with the lowest mean accuracy over severities, and how much it costs."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for cell in audit["corruptions"]["cells"]:
        by_name[cell["name"]].append(cell["accuracy"]["value"])
    means = {name: sum(values) / len(values) for name, values in by_name.items()}
    worst = min(means, key=lambda name: means[name])
    return worst, audit["calibration"]["accuracy"]["value"] - means[worst]
