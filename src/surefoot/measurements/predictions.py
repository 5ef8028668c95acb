"""Accuracy and calibration of a model's predictions: as they are, after temperature, on validation, with scaled features."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.bins import ReliabilityBins, adaptive_rms
from ..calibration.bootstrap import mean_estimate
from ..calibration.scoring import estimates
from ..calibration.temperature import divided, fit_temperature, scale_features
from ..errors import SurefootError, require
from ..plain import plain
from ..types import Predictions
from .base import Measurement, Rows, Summary, Table
from .scores import BINS
from .space import space_head
from .summaries import SHOWN, rounded

if TYPE_CHECKING:
    from .context import Context

# The logits themselves: how large they are, and how far the right one leads (macs Table 6).


MEANS = {"mean_margin": "margin", "logit_norm": "logit_norm", "largest_logit": "largest_logit"}
POINTS = {"values": "margin", "norms": "logit_norm", "largest": "largest_logit"}


def logit_geometry(rows: Rows, seed: int, draws: int = 1000) -> dict[str, Any]:
    """What the logits alone say (macs Tab. 6)."""
    ids = rows.get("index")
    return {name: mean_estimate(rows[column].astype(np.float64), seed, draws, ids=ids) for name, column in MEANS.items()}


def logit_points(rows: Rows) -> dict[str, Any]:
    """Margin, norm and largest logit of images from all over the split, with their means over all of it."""
    count = len(rows["margin"])
    where = np.linspace(0, count - 1, min(SHOWN, count)).round().astype(np.int64)
    shown: dict[str, Any] = {name: rounded(rows[column][where]) for name, column in POINTS.items()}
    columns = {"mean_margin": "margin", "mean_norm": "logit_norm", "mean_largest": "largest_logit"}
    return shown | {name: float(rows[column].mean(dtype=np.float64)) for name, column in columns.items()}


class LogitStatistics(Measurement):
    """Mean norm of the logits, largest logit and margin, over all images (macs Table 6)."""

    part = "geometry"

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        values = logit_geometry(rows, context.seed, context.intervals)
        row = {"norm": values["logit_norm"], "largest": values["largest_logit"], "margin": values["mean_margin"]}
        return Summary(values, {"logits": logit_points(rows)}, row=row)


SCORES = ("accuracy", "nll", "brier", "ece", "rms", "signed_error", "debiased_ece")


def scores_of(context: Context, predictions: Predictions, bins: int) -> dict[str, Any]:
    """The scores of some predictions."""
    return dict(estimates(predictions, SCORES, bins, intervals=context.intervals, seed=context.seed))


class Clean(Measurement):
    """Scores on the images as they are; with `images_per_bin` also the RMS error over bins of so many images."""

    def __init__(self, bins: int = BINS, images_per_bin: int | None = None) -> None:
        require(images_per_bin is None or images_per_bin >= 1, "images_per_bin", "at least 1", images_per_bin)
        self.bins, self.images_per_bin = bins, images_per_bin

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        values, clean = scores_of(context, context.clean, self.bins), context.clean
        if self.images_per_bin is not None:
            values["adaptive_rms"] = adaptive_rms(clean.confidences.numpy(), clean.correct.numpy(), self.images_per_bin)
        return Summary(values, {"reliability": reliability_points(clean, self.bins)})


def reliability_points(predictions: Predictions, bins: int) -> dict[str, Any]:
    """What a reliability diagram draws: confidence, accuracy and share of the images of each bin, and their ECE."""
    found = ReliabilityBins.of(predictions.confidences.numpy(), predictions.correct.numpy(), bins)
    parts = {"edges": found.edges, "confidence": found.mean_confidences, "accuracy": found.accuracies, "share": found.shares}
    return {**plain(parts), "ece": found.ece}


class Temperature(Measurement):
    """Scores after the temperature that the calibration split asks for (macs Table 4).

    Without such a split each half of the images is scored with the temperature of the other, and their mean is reported.
    """

    def __init__(self, bins: int = BINS) -> None:
        self.bins = bins

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        if context.held_out is None:
            crossed = context.temperatures
            require(crossed is not None, "images to cross-fit a temperature on", "at least 2", len(context.clean))
            assert crossed is not None
            after, temperature = divided(context.clean, crossed.temperatures), fmean(fit.temperature for fit in crossed.fits)
            return Summary({"temperature": temperature, **scores_of(context, after, self.bins)})
        fitted = fit_temperature(context.held_out)
        return Summary({"temperature": fitted.temperature, **scores_of(context, fitted.calibrate(context.clean), self.bins)})


class Validation(Measurement):
    """Scores on the validation split."""

    def __init__(self, bins: int = BINS) -> None:
        self.bins = bins

    def run(self, context: Context) -> Any:
        if len(context.data.validation) == 0:
            raise SurefootError("This needs a validation split (data.validation), and there is none here.")
        return scores_of(context, context.predictions_on(context.data.validation, "validation"), self.bins)

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        return Summary(result)


class FeatureScaling(Measurement):
    """ECE before and after one factor on the features, fitted on the calibration split (representation-space Fig. 25)."""

    def __init__(self, bins: int = BINS) -> None:
        self.bins = bins

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        fitted = scale_features(calibration_of(context), space_head(context))
        scaled = fitted.calibrate(context.clean)
        before, after = scores_of(context, context.clean, self.bins), scores_of(context, scaled, self.bins)
        values = {"scale": fitted.scale, "ece_before": before["ece"], "ece": after["ece"], "accuracy": after["accuracy"]}
        both = {"before": reliability_points(context.clean, self.bins), "after": reliability_points(scaled, self.bins)}
        return Summary(values, {"scaled": {**both, "scale": float(fitted.scale), "accuracy": float(after["accuracy"])}})


def calibration_of(context: Context) -> Predictions:
    """Predictions on images that the test never sees."""
    predictions = context.held_out
    if predictions is None:
        raise SurefootError("This needs a calibration split (data.calibration), and there is none here.")
    return predictions
