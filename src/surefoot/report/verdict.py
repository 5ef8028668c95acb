"""The verdict in words, and the five numbers at the top of the page."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ..metrics import find, path_label
from .words import Audit, attack_name, capital, percent, points, spoken, the_attack

# An audit in plain words: what the numbers say.


ONE_SIDED = 0.5  # share of ECE that the signed error must make up
NEARLY_ALWAYS = 0.98  # share of one answer from which it is said
BLIND = 0.1  # if even a perfectly calibrated model might show so much ECE, the images are too few to see any


def calibrated(audit: Audit) -> bool:
    """Whether ECE is no larger than a perfectly calibrated model would show."""
    scores = audit["calibration"]
    return bool(scores["ece"]["value"] <= scores["ece_if_calibrated"][1])


def too_few(audit: Audit) -> bool:
    """Whether nothing can be said of confidence: ECE is within what a perfect model would show, and that is large."""
    return calibrated(audit) and bool(audit["calibration"]["ece_if_calibrated"][1] > BLIND)


def chance(audit: Audit) -> float:
    """The accuracy of the best answer that does not look: the commonest class, or one of K."""
    known = audit.get("recognition")
    return float(known["chance"]) if known else 1 / max(len(audit["subject"]["classes"]), 1)


def better_than_chance(audit: Audit) -> bool:
    """Whether accuracy is clearly above that of an answer without looking."""
    classes = len(audit["subject"]["classes"])
    return classes < 2 or bool(audit["calibration"]["accuracy"]["low"] > chance(audit))


def is_fatal(audit: Audit) -> bool:
    """Whether the model is used wrongly, as far as was found before the audit: then no number is its own."""
    findings = audit.get("preflight", ())
    return any(finding.get("severity") == "fatal" and finding["name"] != "chance" for finding in findings)


def without_looking(audit: Audit) -> str:
    """What a model that is not clearly better than chance is compared with, in words."""
    known = audit.get("recognition")
    share, classes = chance(audit), len(audit["subject"]["classes"])
    if known and share > 1 / classes:
        return f"always answering '{known['majority']}' ({percent(share)})"
    return f"a guess among {classes} classes ({percent(share)})"


def constant_words(audit: Audit) -> str:
    """That it gives one answer to nearly all pictures; nothing for a model whose answers differ."""
    known = audit.get("recognition")
    if not known or known["commonest_share"] < NEARLY_ALWAYS:
        return ""
    return f"It answers '{known['commonest_answer']}' for {percent(known['commonest_share'])} of the pictures."


def side(audit: Audit) -> str:
    """Whether confidence is above accuracy, or below."""
    return "overconfident" if audit["calibration"]["signed_error"]["value"] > 0 else "underconfident"


def one_sided(audit: Audit) -> bool:
    """Whether confidence errs mostly one way, rather than both ways in parts that cancel."""
    scores = audit["calibration"]
    return bool(abs(scores["signed_error"]["value"]) >= ONE_SIDED * scores["ece"]["value"])


def misjudged(audit: Audit) -> str:
    """How confidence errs, and by how much."""
    scores = audit["calibration"]
    if one_sided(audit):
        return f"{side(audit)} by {points(abs(scores['signed_error']['value']))}"
    return f"over- and underconfident in parts, by {points(scores['ece']['value'])} on average"


def clean_beside(audit: Audit) -> float:
    """The accuracy of the images that were corrupted, as they are: a loss is counted on the same images."""
    known = audit["corruptions"].get("clean_accuracy")
    return float(audit["calibration"]["accuracy"]["value"] if known is None else known)


def fewer(audit: Audit, images: int | None) -> str:
    """How many images a number is of, where that is not all of them; nothing else."""
    return "" if images is None or images >= audit["subject"]["images"] else f"{images:,} images"


def beside_words(audit: Audit) -> str:
    """How many images were corrupted and how many of those are right as they are, where they are not all; in brackets."""
    some, known = fewer(audit, audit["corruptions"].get("images")), audit["corruptions"].get("clean_accuracy")
    if not some:
        return ""
    return f" ({some})" if known is None else f" ({percent(known)} on the same {some} as they are)"


def headline(audit: Audit) -> str:
    """The whole audit in two sentences."""
    scores = audit["calibration"]
    right = f"Right on {percent(scores['accuracy']['value'])} of its {audit['subject']['split']} images"
    if not better_than_chance(audit):
        said = " ".join(filter(None, [f"{right}: not clearly better than {without_looking(audit)}.", constant_words(audit)]))
    elif is_fatal(audit):
        said = f"{right}, as it is used here: look at what was found first."
    elif too_few(audit):
        said = f"{right}, which are too few to judge its confidence."
    else:
        said = f"{right}, and its confidence can be believed." if calibrated(audit) else f"{right}, but {misjudged(audit)}."
    worse = []
    if audit.get("corruptions"):
        mean = audit["corruptions"]["mean_accuracy"]["value"]
        does = "take it down to" if mean < clean_beside(audit) else "leave it at"
        worse.append(f"Corrupted pictures {does} {percent(mean)}{beside_words(audit)}")
    if attack := strongest_attack(audit):
        rate = percent(audit["attacks"][attack]["success_rate"]["value"])
        worse.append(f"{the_attack(attack)} turns {rate} of its right predictions into wrong ones")
    return " ".join([said, *([f"{', and '.join(worse)}."] if worse else [])])


def verdict(audit: Audit) -> list[str]:
    """Sentences, the most important first."""
    scores, images = audit["calibration"], audit["subject"]["images"]
    accuracy, ece, low_high = scores["accuracy"], scores["ece"], scores["ece_if_calibrated"]
    said = [
        f"Right on {percent(accuracy['value'])} of {images:,} {audit['subject']['split']} images "
        f"(95\N{NO-BREAK SPACE}% interval {percent(accuracy['low'])} to {percent(accuracy['high'])})."
    ]
    band = f"{percent(low_high[0])} to {percent(low_high[1])}"
    if not better_than_chance(audit):
        said.append(f"That is not clearly better than {without_looking(audit)}: its confidence was not judged.")
        said += filter(None, [constant_words(audit)])
    elif is_fatal(audit):
        said.append("It is used wrongly, as far as was found: its confidence was not judged.")
    elif too_few(audit):
        sentence = f"ECE {percent(ece['value'])}; perfect calibration would show {band} here."
        said.append(f"Too few images to judge its confidence: {sentence}")
    elif calibrated(audit):
        said.append(f"Its confidence can be believed: ECE {percent(ece['value'])}; perfect calibration would show {band} here.")
    else:
        sentence = f"ECE {percent(ece['value'])}, where perfect calibration would show {band}."
        said.append(f"{capital(misjudged(audit))}: {sentence}")
    said += temperature_words(audit) if better_than_chance(audit) and not is_fatal(audit) else []
    if audit.get("corruptions"):
        name, drop = worst_corruption(audit)
        most = f"; it loses most on {spoken(name)}, {points(drop)}" if drop > 0 else ""
        mean = percent(audit["corruptions"]["mean_accuracy"]["value"])
        said.append(f"Corrupted pictures: {mean} right on average{beside_words(audit)}{most}.")
    for attack, result in audit.get("attacks", {}).items():
        rate = result["success_rate"]["value"]
        if rate is not None:  # as where no prediction was right to begin with
            said.append(f"{capital(the_attack(attack))} turns {percent(rate)} of its right predictions into wrong ones.")
    return said


def temperature_words(audit: Audit) -> list[str]:
    """What a temperature would do, and whether that lasts when the picture gets worse."""
    scaling = audit.get("temperature")
    if not scaling:
        return []
    shown = temperatures(audit)
    before, after = audit["calibration"]["ece"]["value"], scaling["calibration"]["ece"]["value"]
    helps = after < before and percent(after) != percent(before)
    does = "takes" if helps else "does not help: it takes"
    said = f"Temperature {shown} (from {scaling['fitted_on']}) {does} ECE from {percent(before)} to {percent(after)}"
    if scaling.get("corrupted_ece") is not None:
        said += (
            f", and on corrupted pictures from {percent(scaling['corrupted_ece']['value'])} to "
            f"{percent(scaling['corrupted_scaled_ece']['value'])}"
        )
    return [f"{said}."]


def temperatures(audit: Audit) -> str:
    """The temperature to use, in words; audits of older versions know only those of the halves."""
    scaling = audit["temperature"]
    return " and ".join(f"{value:.2f}" for value in ([scaling["deploy"]] if scaling.get("deploy") else scaling["temperatures"]))


def worst_corruption(audit: Audit) -> tuple[str, float]:
    """The corruption with the lowest mean accuracy over severities, and how much it costs."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for cell in audit["corruptions"]["cells"]:
        by_name[cell["name"]].append(cell["accuracy"]["value"])
    means = {name: sum(values) / len(values) for name, values in by_name.items()}
    worst = min(means, key=lambda name: means[name])
    return worst, clean_beside(audit) - means[worst]


def worst_family(audit: Audit) -> tuple[str, float] | None:
    """The family of corruptions with the lowest accuracy, and how much it costs; None where none was measured."""
    families = audit["corruptions"]["families"]
    if not families:
        return None
    worst = min(families, key=lambda name: families[name]["accuracy"]["value"])
    return worst, clean_beside(audit) - families[worst]["accuracy"]["value"]


def strongest_attack(audit: Audit) -> str | None:
    """The attack that succeeds most often; None where none was tried, or no prediction was right before."""
    rates = {name: result["success_rate"]["value"] for name, result in (audit.get("attacks") or {}).items()}
    known = {name: rate for name, rate in rates.items() if rate is not None}
    return max(known, key=lambda name: known[name]) if known else None


# The five numbers at the top of the page.


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
    able = better_than_chance(audit) and not is_fatal(
        audit
    )  # what does not look loses nothing by damage, and may be calibrated: no merit
    judged = "" if too_few(audit) or not able else "good" if calibrated(audit) else "poor"
    best = f"right on images as they are; compare {without_looking(audit)}"
    shown = [
        card(find("accuracy").label, scores["accuracy"], best, "" if able else "poor"),
        card(f"calibration error ({find('ece').label})", scores["ece"], band, judged),
    ]
    if "corruptions" not in audit:
        scaled = (audit.get("temperature") or {}).get("calibration")
        if scaled:
            shown.append(card(find("scaled_ece").label, scaled["ece"], find("scaled_ece").meaning))
        value, low, high = (f"{scores['brier'][key]:.3f}" for key in ("value", "low", "high"))
        shown.append(Card(find("brier").label, value, f"{low} to {high}", find("brier").meaning))
        ranks = find("auroc")
        if scores["auroc"]["value"] is None:
            every = "right" if scores["accuracy"]["value"] else "wrong"
            return [*shown, Card(ranks.label, "not defined", f"all predictions are {every}", ranks.meaning)]
        return [*shown, card(ranks.label, scores["auroc"], ranks.meaning)]
    if worse := audit.get("corruptions"):
        mean, clean, some = worse["mean_accuracy"], clean_beside(audit), fewer(audit, worse.get("images"))
        kinds, strengths = (len({cell[key] for cell in worse["cells"]}) for key in ("name", "severity"))
        damage = f"mean over {kinds} kinds of damage, {strengths} strengths of each"
        damage += f";{beside_words(audit)[:-1].replace(' (', ' ', 1)}" if some else ""
        shown.append(card(path_label("corruptions.mean_accuracy"), mean, damage, tone(clean - mean["value"]) if able else ""))
        if worst := worst_family(audit):
            family, drop = worst
            accuracy = worse["families"][family]["accuracy"]
            on = f"accuracy on its pictures{f'; {some}' if some else ''}"
            shown.append(card(f"worst family: {family}", accuracy, on, tone(drop) if able else ""))
    if name := strongest_attack(audit):
        rate = audit["attacks"][name]["success_rate"]
        few = fewer(audit, audit["attacks"][name].get("images"))
        broken = f"right predictions that {the_attack(name)} turns wrong{f'; {few}' if few else ''}"
        title = f"attack {find('success_rate').label}: {attack_name(name)}"
        shown.append(card(title, rate, broken, tone(rate["value"] / 3) if able else ""))
    return shown


def card(name: str, number: dict[str, Any], meaning: str, tone: str = "") -> Card:
    return Card(name, percent(number["value"]), f"{percent(number['low'])} to {percent(number['high'])}", meaning, tone)


def tone(drop: float) -> str:
    """A loss of accuracy as good (below 5 points), fair (below 15) or poor."""
    return "good" if drop < 0.05 else "fair" if drop < 0.15 else "poor"
