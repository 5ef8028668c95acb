"""A second, plain implementation of what rows of a study say of predictions, and how a study makes a row."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from surefoot.auditing.passes import measure
from surefoot.measurements.context import Context
from surefoot.measurements.registry import build, check_measure

COUNT = 60  # images of a subset
CLOSE = {"abs": 1e-6}


def study_context(run, data, **changes):
    """As a study has it: temperatures from the calibration split, no intervals."""
    known = {"space": run.model, "recipe": run.recipe, "objective": run.objective}
    known |= {"calibrate_on": "calibration", "intervals": 0, **changes}
    return Context(run.predictor, data, data.test, torch.device("cpu"), **known)


def row(context, name, **options):
    """The numbers of a measurement as a worker makes them."""
    measurement = build(*check_measure(name, options))
    return measurement.numbers(measure(context, measurement, name))


def logits_of(model, images):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part) for part in images.split(100)])


def share_right(model, images, labels):
    return float((logits_of(model, images).argmax(1) == labels).double().mean())


def pixels(split):
    return split.images.float() / 255


def softmax(logits):
    raised = np.exp(logits - logits.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def scores(logits, labels, bins=15):
    """Accuracy, NLL, Brier and calibration errors, image by image and bin by bin, in float64."""
    logits, labels = np.asarray(logits, np.float64), np.asarray(labels)
    probabilities = softmax(logits)
    own = probabilities[np.arange(len(labels)), labels]
    truth = np.eye(logits.shape[1])[labels]
    confidence, right = probabilities.max(1), probabilities.argmax(1) == labels
    gaps, sizes, debiased = [], [], 0.0
    for low in range(bins):
        inside = (confidence > low / bins) & (confidence <= (low + 1) / bins)
        if inside.any():
            gap = float((confidence[inside] - right[inside]).sum())
            spread = math.sqrt(float((confidence[inside] * (1 - confidence[inside])).sum()))
            z = gap / spread
            debiased += gap * math.erf(z / math.sqrt(2)) - spread * math.sqrt(2 / math.pi) * math.exp(-z * z / 2)
            gaps.append(gap)
            sizes.append(int(inside.sum()))
    count = len(labels)
    return {
        "accuracy": float(right.mean()),
        "nll": float(-np.log(own).mean()),
        "brier": float(np.square(probabilities - truth).sum(1).mean()),
        "ece": sum(abs(gap) for gap in gaps) / count,
        "rms": math.sqrt(sum(gap * gap / size for gap, size in zip(gaps, sizes, strict=True)) / count),
        "signed_error": float(confidence.mean() - right.mean()),
        "debiased_ece": debiased / count,
    }


def best_factor(logits, labels, bias=0.0):
    """The factor of logits less their bias with the lowest NLL, by Brent's method."""
    lines, labels = np.asarray(logits, np.float64) - bias, np.asarray(labels)

    def loss(factor):
        scaled = factor * lines + bias
        return float((np.logaddexp.reduce(scaled, axis=1) - scaled[np.arange(len(labels)), labels]).mean())

    return minimize_scalar(loss, bounds=(0.01, 100), method="bounded", options={"xatol": 1e-10}).x
