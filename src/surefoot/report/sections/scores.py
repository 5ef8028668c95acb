"""All scores on clean images, with their intervals and what they mean."""

from __future__ import annotations

from collections.abc import Sequence

from .base import Model, Section

SHARES = {"accuracy", "top5", "ece", "rms", "max_error", "signed_error", "debiased_ece", "adaptive_ece", "classwise_ece"}
SHARES |= {"smooth_ece", "auroc"}
NAMES = {
    "accuracy": ("accuracy", "right answers"),
    "top5": ("top-5 accuracy", "right answer among the five most probable"),
    "ece": ("ECE", "mean gap between confidence and accuracy over 15 bins of equal width"),
    "signed_error": ("signed error", "mean confidence minus accuracy; above 0 is overconfident"),
    "debiased_ece": ("debiased ECE", "ECE without the share that chance alone would show"),
    "adaptive_ece": ("adaptive ECE", "the same with bins of equally many images"),
    "classwise_ece": ("classwise ECE", "the same for each class's probability, on average"),
    "smooth_ece": ("smooth ECE", "the same without bins"),
    "rms": ("RMS calibration error", "root of the mean squared gap, which weighs large gaps more"),
    "max_error": ("largest gap", "of any bin, however few images it holds"),
    "nll": ("NLL", "negative log-likelihood; punishes confident mistakes most"),
    "brier": ("Brier score", "squared error of all probabilities"),
    "brier_reliability": ("Brier: reliability", "the part that calibration could remove"),
    "brier_resolution": ("Brier: resolution", "how far answers differ from the base rate; larger is better"),
    "brier_uncertainty": ("Brier: uncertainty", "of the labels alone; no model can change it"),
    "aurc": ("AURC", "mean error over all thresholds of confidence; smaller is better"),
    "auroc": ("AUROC", "chance that a right answer is surer than a wrong one"),
}


def scores_section(models: Sequence[Model]) -> Section:
    """A row for each score that a model has."""
    held = [name for name in NAMES if any(name in model.audit["calibration"] for model in models)]
    rows = [
        {
            "name": NAMES[name][0],
            "meaning": NAMES[name][1],
            "share": name in SHARES,
            "cells": [model.audit["calibration"].get(name) for model in models],
        }
        for name in held
    ]
    return Section("scores", "All scores on clean images", {"rows": rows, "models": models})
