"""The promises of a run, in one file beside its weights: prediction sets, and the confidence from which it answers alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..errors import SurefootError
from ..files import read_header, read_tensors, write_tensors
from ..types import Logits, Predictions
from .calibrators import FittedOn
from .prediction_sets import PredictionSets, Score, fit_prediction_sets
from .risk import RiskThreshold, fit_risk_threshold

SETS, RISK = "prediction_sets", "risk_threshold"


@dataclass(frozen=True)
class Answers:
    """What a model with promises says of some images: `sets` and `answered` are None where nothing was fitted.

    `sets` is images x classes; `answered` is False where a person should look.
    """

    classes: Tensor
    confidences: Tensor
    sets: Tensor | None = None
    answered: Tensor | None = None


@dataclass(frozen=True)
class Guarantees:
    """Prediction sets and a risk threshold for the logits of a model, calibrated where it is calibrated."""

    prediction_sets: PredictionSets | None = None
    risk_threshold: RiskThreshold | None = None

    def answer(self, logits: Logits, indices: ArrayLike | Tensor | None = None) -> Answers:
        """Classes, confidences, sets and whether to answer alone."""
        probabilities = logits.float().softmax(1) if logits.element_size() < 4 else logits.softmax(1)
        return Answers(
            classes=logits.argmax(1),
            confidences=probabilities.amax(1),
            sets=None if self.prediction_sets is None else self.prediction_sets.apply(logits, indices),
            answered=None if self.risk_threshold is None else self.risk_threshold.answers(logits),
        )

    @property
    def outputs(self) -> dict[str, Callable[[Logits], Tensor]]:
        """What an exported model gives beside its logits: `set` and `answer`."""
        functions: dict[str, Callable[[Logits], Tensor]] = {}
        if self.prediction_sets is not None:
            if self.prediction_sets.score.randomised:
                raise SurefootError("Randomised prediction sets cannot be exported; fit them with randomised=False.")
            functions["set"] = self.prediction_sets.members
        if self.risk_threshold is not None:
            functions["answer"] = self.risk_threshold.passes
        return functions

    @property
    def words(self) -> dict[str, Any]:
        """What is promised, in plain values."""
        described: dict[str, Any] = {}
        if (sets := self.prediction_sets) is not None:
            described[SETS] = {"coverage": sets.coverage, "score": sets.score.score, "by_class": sets.by_class}
            described[SETS] |= {"images": sets.images, "tuned_on": sets.tuned_on, "note": sets.note}
        if (bound := self.risk_threshold) is not None:
            described[RISK] = {"threshold": bound.threshold, "risk": bound.risk, "confidence": bound.confidence}
            described[RISK] |= {"images": bound.images, "answered": bound.answered, "mistakes": bound.mistakes}
            described[RISK] |= {"tuned_on": bound.tuned_on, "note": bound.note}
        return described

    def save(self, path: str | Path) -> None:
        """Write them as safetensors; numbers only, nothing in the file is executed when it is read."""
        about: dict[str, Any] = {}
        tensors: dict[str, Tensor] = {}
        for name, fit in ((SETS, self.prediction_sets), (RISK, self.risk_threshold)):
            if fit is None:
                continue
            state = {key: value for key, value in vars(fit).items() if key not in ("fitted_on", "thresholds", "score")}
            about[name] = {**state, "digest": fit.fitted_on.digest, "data": fit.fitted_on.data}
            if isinstance(fit, PredictionSets):
                about[name]["score"] = asdict(fit.score)
                tensors["thresholds"] = fit.thresholds
            if fit.fitted_on.indices is not None:
                tensors[f"{name}.indices"] = fit.fitted_on.indices
        if not about:
            raise SurefootError("There is nothing to write: neither prediction sets nor a risk threshold.")
        write_tensors(path, tensors or {"empty": torch.zeros(1)}, {"surefoot": json.dumps(about)})


def load_guarantees(path: str | Path) -> Guarantees:
    """Read what `Guarantees.save` wrote."""
    tensors, about = read_tensors("guarantees", path), read_header("guarantees", path)
    if not about or not set(about) <= {SETS, RISK}:
        raise SurefootError(f"'{path}' was not written by Surefoot: it names no guarantee.")
    try:
        for name, state in about.items():
            state["fitted_on"] = FittedOn(state.pop("digest"), tensors.get(f"{name}.indices"), state.pop("data"))
        if SETS in about:
            about[SETS] |= {"score": Score(**about[SETS]["score"]), "thresholds": tensors["thresholds"]}
        sets = PredictionSets(**about[SETS]) if SETS in about else None
        return Guarantees(sets, RiskThreshold(**about[RISK]) if RISK in about else None)
    except (AttributeError, KeyError, TypeError) as error:
        raise SurefootError(f"'{path}' is not a whole file of guarantees: {error}.") from error


def fit_guarantees(
    predictions: Predictions,
    tuning: Predictions,
    *,
    coverage: float | None = None,
    score: str = "lac",
    by_class: bool = False,
    risk: float | None = None,
    confidence: float = 0.95,
) -> Guarantees:
    """What was asked for, from predictions of images that neither the calibrator nor `tuning` has.

    Sets are not randomised, so that a model says the same of a picture whenever it is asked, in a file of any format.
    """
    sets = None
    if coverage is not None:
        sets = fit_prediction_sets(predictions, coverage, score, by_class=by_class, randomised=False, tuning=tuning)
    return Guarantees(sets, None if risk is None else fit_risk_threshold(predictions, risk, confidence, tuning=tuning))
