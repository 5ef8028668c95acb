"""Measurements of a model's answers: accuracy and calibration, before and after temperature, and the logits themselves."""

from __future__ import annotations

import torch

from ..calibration.feature_scaling import scale_features
from ..calibration.scoring import estimates
from ..calibration.temperature import fit_temperature
from ..models.logit_margins import logit_margins
from ..types import Predictions
from .subjects import Subject

SCORES = ("accuracy", "nll", "brier", "ece", "rms", "signed_error", "debiased_ece")
Metrics = dict[str, float]


def score(answers: Predictions, bins: int) -> Metrics:
    """The scores of some predictions, without intervals: a study's intervals are over seeds."""
    return {name: float(value) for name, value in estimates(answers, SCORES, bins, intervals=0).items()}


def clean(subject: Subject, bins: int = 15) -> Metrics:
    """Scores on the test split."""
    return score(subject.clean, bins)


def temperature(subject: Subject, bins: int = 15) -> Metrics:
    """Scores on the test split after the temperature that the calibration split asks for (macs Table 4)."""
    fitted = fit_temperature(subject.calibration)
    return {"temperature": fitted.temperature, **score(fitted.calibrate(subject.clean), bins)}


def validation(subject: Subject, bins: int = 15) -> Metrics:
    """Scores on the validation split."""
    return score(subject.answers(subject.data.validation), bins)


def logit_statistics(subject: Subject) -> Metrics:
    """Mean norm of the logits, largest logit and margin on the test split (macs Table 6)."""
    logits, labels = subject.clean.logits.double(), subject.clean.labels
    return {
        "norm": float(torch.linalg.vector_norm(logits, dim=1).mean()),
        "largest": float(logits.amax(1).mean()),
        "margin": float(logit_margins(logits, labels).mean()),
    }


def scaled_features(subject: Subject, bins: int = 15) -> Metrics:
    """ECE before and after one factor on the features, fitted on the calibration split (representation-space Fig. 25)."""
    fitted = scale_features(subject.calibration, subject.model.head)
    after = score(fitted.calibrate(subject.clean), bins)
    return {
        "scale": fitted.scale,
        "ece_before": score(subject.clean, bins)["ece"],
        "ece": after["ece"],
        "accuracy": after["accuracy"],
    }
