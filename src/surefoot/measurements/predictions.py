"""Accuracy and calibration of a model's predictions: as they are, after temperature, on validation, with scaled features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..calibration.feature_scaling import scale_features
from ..calibration.scoring import estimates
from ..calibration.temperature import fit_temperature
from ..errors import SurefootError
from ..types import Predictions
from .base import Measurement, Summary, Table
from .scores import BINS
from .space import space_head

if TYPE_CHECKING:
    from .context import Context

SCORES = ("accuracy", "nll", "brier", "ece", "rms", "signed_error", "debiased_ece")


def scores_of(context: Context, predictions: Predictions, bins: int) -> dict[str, Any]:
    """The scores of some predictions."""
    return dict(estimates(predictions, SCORES, bins, intervals=context.intervals, seed=context.seed))


class Clean(Measurement):
    """Scores on the images as they are."""

    def __init__(self, bins: int = BINS) -> None:
        self.bins = bins

    def summarise(self, context: Context, table: Table, found: Any) -> Summary:
        return Summary(scores_of(context, context.clean, self.bins))


class Temperature(Measurement):
    """Scores after the temperature that the calibration split asks for (macs Table 4)."""

    def __init__(self, bins: int = BINS) -> None:
        self.bins = bins

    def summarise(self, context: Context, table: Table, found: Any) -> Summary:
        fitted = fit_temperature(calibration_of(context))
        return Summary({"temperature": fitted.temperature, **scores_of(context, fitted.calibrate(context.clean), self.bins)})


class Validation(Measurement):
    """Scores on the validation split."""

    def __init__(self, bins: int = BINS) -> None:
        self.bins = bins

    def run(self, context: Context) -> Any:
        return scores_of(context, context.predictions_on(context.data.validation, "validation"), self.bins)

    def summarise(self, context: Context, table: Table, found: Any) -> Summary:
        return Summary(found)


class FeatureScaling(Measurement):
    """ECE before and after one factor on the features, fitted on the calibration split (representation-space Fig. 25)."""

    def __init__(self, bins: int = BINS) -> None:
        self.bins = bins

    def summarise(self, context: Context, table: Table, found: Any) -> Summary:
        fitted = scale_features(calibration_of(context), space_head(context))
        before = scores_of(context, context.clean, self.bins)
        after = scores_of(context, fitted.calibrate(context.clean), self.bins)
        values = {"scale": fitted.scale, "ece_before": before["ece"], "ece": after["ece"], "accuracy": after["accuracy"]}
        return Summary(values)


def calibration_of(context: Context) -> Predictions:
    """Predictions on images that the test never sees."""
    found = context.held_out
    if found is None:
        raise SurefootError("This needs predictions on a calibration split, and temperatures are cross-fitted here.")
    return found
