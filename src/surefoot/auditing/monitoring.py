"""In production, without labels: how accurate a model still is, how much it answers, what looks foreign, what has drifted.

Accuracy is estimated from confidences alone, against the table of an audit.

- `atc`: the share of new pictures whose confidence is at least t, where t is the confidence that as many audited pictures
  miss as are wrong (Garg et al. 2022, "Leveraging unlabeled data to predict out-of-distribution performance").
- `doc`: the audited accuracy minus the fall of the mean confidence (Guillory et al. 2021, "Predicting with confidence on unseen
  distributions").
- `fit`: the same with the fall times a slope, which is fitted over the audit's own conditions.

How good each is was measured on the audit's conditions: the mean error when a family of corruptions is left out of the fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.bootstrap import copies, draw_spans, estimate, states
from ..corruptions.families import FAMILIES
from ..errors import SurefootError, UnknownName, require
from ..intervals import Estimate, wilson
from ..keys import derive
from ..measurements.base import CLEAN
from .rules import OPERATORS, parse_rule
from .table import read_conditions
from .table_files import table_folder

Array = NDArray[Any]
DRAWS = 400
LEAST = 4  # conditions, for a line through them
DIRECTIONS = 10  # of the features that are tested for drift
FOREIGN = 0.95  # of the audited pictures look less foreign than the bound
ESTIMATORS = ("atc", "doc", "fit")
COLUMNS = ("index", "confidence", "correct", "predicted")


@dataclass(frozen=True)
class Condition:
    """Confidences and outcomes under one condition of the audit."""

    name: str
    confidences: Array
    correct: Array

    @property
    def accuracy(self) -> float:
        return float(self.correct.mean())

    @property
    def family(self) -> str:
        """What is left out together."""
        kind = self.name.rpartition("/")[0] or self.name
        return next((family for family, members in FAMILIES.items() if kind in members), kind)


@dataclass(frozen=True)
class Reference:
    """What an audit knows: its clean pictures, and the same under its conditions, without attacks."""

    clean: Condition
    predicted: Array
    conditions: tuple[Condition, ...]
    classes: int

    @classmethod
    def of(cls, folder: str | Path, audit: Mapping[str, Any]) -> Reference:
        """From the table of an audit."""
        table = table_folder(folder)
        names = changed_conditions(audit)
        rows = read_conditions(table, [CLEAN, *names], COLUMNS)
        if CLEAN not in rows or len(rows[CLEAN]["index"]) < 2:
            raise SurefootError(f"The table of '{folder}' has too few clean pictures to compare others with.")

        def condition(name: str) -> Condition:
            return Condition(name, rows[name]["confidence"].astype(np.float64), rows[name]["correct"].astype(bool))

        others = tuple(condition(name) for name in names if name in rows)
        return cls(condition(CLEAN), rows[CLEAN]["predicted"].astype(np.int64), others, len(audit["subject"]["classes"]))


def changed_conditions(audit: Mapping[str, Any]) -> list[str]:
    """Corruptions, noise and occlusions of an audit, as its table names them; confidences under attack say something else."""
    cells = [f"{cell['name']}/{cell['severity']:g}" for cell in (audit.get("corruptions") or {}).get("cells", ())]
    noise = [f"noise-{row['kind']}/{255 * row['level']:g}" for row in audit.get("noise") or ()]
    return [*cells, *noise, *(f"{row['name']}/{row['severity']:g}" for row in audit.get("occlusions") or ())]


def atc_threshold(confidences: Array, correct: Array, weights: Array | None = None) -> Array:
    """The confidence that as many pictures miss as are wrong, under each draw's weights: one for each draw."""
    order = confidences.argsort(kind="stable")
    weights = np.ones((1, len(order))) if weights is None else weights
    ranked = np.cumsum(weights[:, order], axis=1)
    wrong = (weights * ~correct).sum(1, keepdims=True)
    below = (ranked <= wrong + 1e-9).sum(1)
    ordered = np.append(confidences[order], np.inf)
    return np.asarray(ordered[below])


def atc(clean: Condition, confidences: Array) -> float:
    return float((confidences >= atc_threshold(clean.confidences, clean.correct)[0]).mean())


@dataclass(frozen=True)
class Line:
    """accuracy = audited accuracy - slope * fall of the mean confidence, the slope by least squares over conditions."""

    slope: float

    @classmethod
    def through(cls, clean: Condition, conditions: Sequence[Condition]) -> Line:
        falls = np.array([clean.confidences.mean() - each.confidences.mean() for each in conditions])
        losses = np.array([clean.accuracy - each.accuracy for each in conditions])
        squares = float(falls @ falls)
        return cls(float(falls @ losses) / squares if squares > 0 else 1.0)

    def at(self, accuracy: Array | float, fall: Array | float) -> Array:
        values: Array = np.clip(np.asarray(accuracy) - self.slope * np.asarray(fall), 0.0, 1.0)
        return values


PLAIN = Line(1.0)  # the difference of confidences itself


def doc(clean: Condition, confidences: Array, line: Line = PLAIN) -> float:
    return float(line.at(clean.accuracy, float(clean.confidences.mean() - confidences.mean())))


def left_out_errors(reference: Reference) -> dict[str, dict[str, float]]:
    """The mean error of each estimate on each family of conditions; the line is fitted without that family."""
    families = dict.fromkeys(each.family for each in reference.conditions)
    errors: dict[str, dict[str, float]] = {name: {} for name in ESTIMATORS}
    for family in families:
        own = [each for each in reference.conditions if each.family == family]
        others = [each for each in reference.conditions if each.family != family]
        clean = reference.clean
        falls = np.array([clean.confidences.mean() - each.confidences.mean() for each in own])
        truth = np.array([each.accuracy for each in own])
        found = {"atc": np.array([atc(clean, each.confidences) for each in own]), "doc": PLAIN.at(clean.accuracy, falls)}
        if len(others) >= LEAST:
            found["fit"] = Line.through(clean, others).at(clean.accuracy, falls)
        for name, values in found.items():
            errors[name][family] = float(np.abs(values - truth).mean())
    return {name: each for name, each in errors.items() if each}


def estimates(reference: Reference, confidences: Array, seed: int = 0) -> dict[str, Estimate]:
    """Accuracy on new pictures by each way, with intervals over draws of audited and of new pictures."""
    clean = reference.clean
    own, theirs = states(len(clean.correct), seed), states(len(confidences), derive(seed, "new"))
    passed_shares, accuracies, falls = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    order = confidences.argsort()
    for begin, end in draw_spans(len(own) + len(theirs), DRAWS):
        weights, new = copies(own, begin, end).T, copies(theirs, begin, end).T
        total, count = (np.where(sums > 0, sums, np.nan) for sums in (weights.sum(1), new.sum(1)))
        bounds = atc_threshold(clean.confidences, clean.correct, weights)
        summed = np.concatenate([np.zeros((len(new), 1)), np.cumsum(new[:, order], axis=1)], axis=1)
        below = np.searchsorted(confidences[order], bounds)
        passed_shares.append(1 - summed[np.arange(len(new)), below] / count)
        accuracies.append(weights @ clean.correct / total)
        falls.append(weights @ clean.confidences / total - new @ confidences / count)
    accuracy, fall = np.concatenate(accuracies), np.concatenate(falls)
    found = {"atc": estimate(atc(clean, confidences), np.concatenate(passed_shares))}
    lines = {"doc": PLAIN}
    if len(reference.conditions) >= LEAST:
        lines["fit"] = Line.through(clean, reference.conditions)
    return found | {name: estimate(doc(clean, confidences, line), line.at(accuracy, fall)) for name, line in lines.items()}


def share(part: int, count: int) -> Estimate:
    ends = wilson(part, count)
    return Estimate(ends["accuracy"], ends["low"], ends["high"])


# Drift, with a test.


def confidence_drift(reference: Reference, confidences: Array) -> dict[str, float]:
    """Kolmogorov and Smirnov's test of the confidences."""
    from scipy.stats import ks_2samp

    result = ks_2samp(reference.clean.confidences, confidences, method="asymp")
    return {"statistic": float(result.statistic), "p": float(result.pvalue)}


def class_drift(reference: Reference, predicted: Array) -> dict[str, float]:
    """The chi-squared test of the predicted classes."""
    from scipy.stats import chi2_contingency

    counts = np.stack([np.bincount(each, minlength=reference.classes) for each in (reference.predicted, predicted)])
    seen = counts[:, counts.sum(0) > 0]
    if seen.shape[1] < 2:
        return {"statistic": 0.0, "p": 1.0}
    result = chi2_contingency(seen)
    return {"statistic": float(result.statistic), "p": float(result.pvalue)}


def feature_drift(audited: Array, new: Array) -> dict[str, float]:
    """Kolmogorov and Smirnov's test along the principal directions of audited features, the smallest p times their number.

    Univariate tests with Bonferroni's correction, as Rabanser, Guennemann and Lipton 2019, "Failing loudly".
    """
    from scipy.stats import ks_2samp

    centred = audited - audited.mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    chosen = directions[:DIRECTIONS].T
    ours, theirs = centred @ chosen, (new - audited.mean(0)) @ chosen
    results = [ks_2samp(one, two, method="asymp") for one, two in zip(ours.T, theirs.T, strict=True)]
    least = min(results, key=lambda result: float(result.pvalue))
    return {"statistic": float(least.statistic), "p": min(1.0, float(least.pvalue) * len(results))}


@dataclass(frozen=True)
class Alarm:
    """A rule that calls for somebody, and whether it does."""

    rule: str
    value: float
    on: bool


def raised(rules: Sequence[str], numbers: Mapping[str, float | None]) -> list[Alarm]:
    """Every rule on the numbers of a monitor; one that holds is an alarm."""
    alarms = []
    for text in rules:
        rule = parse_rule(text)
        require(not rule.baseline, "alarm", "NAME < NUMBER (or <=, >, >=)", text)
        if rule.name not in numbers:
            raise UnknownName("number of a monitor", rule.name, numbers)
        value = numbers[rule.name]
        if value is None or math.isnan(value):
            raise SurefootError(f"Alarm '{text}' cannot be judged: {rule.name} is not known here.")
        alarms.append(Alarm(text, float(value), OPERATORS[rule.sign](float(value), rule.bound)))
    return alarms
