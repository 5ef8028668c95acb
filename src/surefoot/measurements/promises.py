"""What was promised on clean pictures, replayed under every condition: kept, broken, or not to be told.

Prediction sets and the threshold of a risk are fitted once, on images that they are not judged on, and three columns of the
table say what they come to: `covered` (the label is in the set), `set_size`, and `answered` (the model decides by itself).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..calibration.disjoint import halves
from ..calibration.prediction_sets import PredictionSets, fit_prediction_sets
from ..calibration.risk import RiskThreshold, confidences_of, fit_risk_threshold, least_answers
from ..intervals import NORMAL_95, Estimate, wilson
from ..types import Labels, Logits, Predictions
from .base import CLEAN, Rows, Table
from .thresholds import CONFIDENCE, RISKS

if TYPE_CHECKING:
    from .context import Context

COVERAGE = 0.9
COLUMNS = ("covered", "set_size", "answered")
KEPT, BROKEN, UNKNOWN = "kept", "broken", "cannot be told"
NUMERAL = re.compile(r"\d+(\.\d+)?")
LEAST = 4  # images: fewer have no part to fix a score and one to promise by, in both halves


@dataclass(frozen=True)
class Promises:
    """Prediction sets and a risk threshold: one of each, or two of each where each half of the images serves the other."""

    sets: tuple[PredictionSets, ...]
    risks: tuple[RiskThreshold, ...]
    folds: Tensor  # of each image of the split

    @property
    def wanted_risk(self) -> float:
        return self.risks[0].risk

    @property
    def notes(self) -> list[str]:
        """What could not be promised: one reason where it is so for both halves."""
        notes = []
        for kind in (self.sets, self.risks):
            said = [each.note for each in kind if each.note]
            notes += said[:1] if len(said) == len(kind) else [f"For one half of the images: {note}" for note in said]
        return notes

    def columns(self, logits: Logits, labels: Labels, folds: Tensor) -> dict[str, np.ndarray[Any, Any]]:
        """The three columns of images of these folds, under whatever condition."""
        sizes, covered, answered = (torch.zeros(len(logits), dtype=kind) for kind in (torch.int32, torch.bool, torch.bool))
        for fold, (sets, risk) in enumerate(zip(self.sets, self.risks, strict=True)):
            own = (folds == fold).nonzero().flatten()
            if not len(own):
                continue
            members = sets.members(logits[own])
            sizes[own] = members.sum(1, dtype=torch.int32)
            covered[own] = members.gather(1, labels.cpu()[own, None])[:, 0]
            if risk.threshold is not None:
                answered[own] = confidences_of(logits[own]) >= risk.threshold
        return {"covered": covered.numpy(), "set_size": sizes.numpy(), "answered": answered.numpy()}


def fit_promises(clean: Predictions, held_out: Predictions | None, seed: int) -> Promises | None:
    """Fitted on `held_out`, or by halves; the risk is the smallest of the page's that can be promised, else the largest."""
    if len(clean if held_out is None else held_out) < LEAST:
        return None
    if held_out is not None:
        sources, folds = [held_out], torch.zeros(len(clean), dtype=torch.long)
    else:
        folds = halves(clean, seed)
        sources = [clean[(folds != fold).nonzero().flatten()] for fold in (0, 1)]
    sets = tuple(fit_prediction_sets(source, COVERAGE, "lac", seed=seed) for source in sources)
    for risk in RISKS:
        fits = tuple(fit_risk_threshold(source, risk, CONFIDENCE, seed=seed) for source in sources)
        if all(fit.threshold is not None for fit in fits):
            break
    return Promises(sets, fits, folds)


def replayed(context: Context, table: Table, conditions: Sequence[str]) -> dict[str, Any]:
    """Every promise under every condition, and from which severity on it is broken."""
    promises = context.promises
    if promises is None:
        return {}
    found = {name: judged(table.clean() if name == CLEAN else table.rows(name), promises) for name in (CLEAN, *conditions)}
    return {
        "coverage": COVERAGE,
        "wanted_risk": promises.wanted_risk,
        "confidence": CONFIDENCE,
        "notes": promises.notes,
        "conditions": found,
        "first_broken": {name: first_broken(found, f"{name}_promise") for name in ("coverage", "risk")},
    }


def judged(rows: Rows, promises: Promises) -> dict[str, Any]:
    """Four numbers with intervals, and whether the two promises are kept on these images, or missed by more than chance.

    What is missed by no more than chance cannot be told; nor can a risk where too little is answered.
    """
    images = len(rows["index"])
    covered, answered = rows["covered"].astype(bool), rows["answered"].astype(bool)
    mistakes, count = int((answered & ~rows["correct"].astype(bool)).sum()), int(answered.sum())
    coverage, risk = share(int(covered.sum()), images), share(mistakes, count)
    enough = count >= least_answers(promises.wanted_risk, CONFIDENCE)  # fewer could not show it, were all of them right
    return {
        "coverage": coverage,
        "set_size": mean(rows["set_size"].astype(np.float64)),
        "risk": risk,
        "answered": share(count, images),
        "images": images,
        "coverage_promise": KEPT if coverage >= COVERAGE else BROKEN if coverage.high < COVERAGE else UNKNOWN,
        "risk_promise": BROKEN
        if risk.low > promises.wanted_risk
        else KEPT
        if enough and risk <= promises.wanted_risk
        else UNKNOWN,
    }


def share(part: int, count: int) -> Estimate:
    """With Wilson's interval; NaN of nothing."""
    if not count:
        return Estimate(math.nan, math.nan, math.nan)
    ends = wilson(part, count)
    return Estimate(ends["accuracy"], ends["low"], ends["high"])


def mean(values: np.ndarray[Any, Any]) -> Estimate:
    """With the interval of the normal distribution."""
    half = NORMAL_95 * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    value = float(values.mean())
    return Estimate(value, value - half, value + half)


def first_broken(found: Mapping[str, Mapping[str, Any]], promise: str) -> dict[str, float]:
    """The lowest severity of each corruption, noise or attack at which a promise is broken; nothing where it never is."""
    first: dict[str, float] = {}
    for condition, numbers in found.items():
        name, _, severity = condition.rpartition("/")
        if name and numbers[promise] == BROKEN and NUMERAL.fullmatch(severity):
            first[name] = min(first.get(name, math.inf), float(severity))
    return first
