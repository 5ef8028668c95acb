"""An audit of predictions alone, for models that are not PyTorch, or not here."""

from __future__ import annotations

from pathlib import Path

from ..calibration.bins import reliability
from ..calibration.bootstrap import mean_estimate
from ..calibration.scoring import scores
from ..errors import SurefootError
from ..geometry.logit_margins import logit_margins
from ..types import Predictions
from .result import Geometry, PredictionsAudit
from .subjects import subject
from .temperatures import CROSS_FIT, choose_temperatures, scaled


def audit_predictions(
    predictions: Predictions,
    *,
    name: str = "predictions",
    split: str = "given",
    seed: int = 0,
    calibrate_on: str | Predictions = CROSS_FIT,
    output: str | Path | None = None,
) -> PredictionsAudit:
    """Scores, reliability and temperature of a model that is known by its answers only."""
    if isinstance(calibrate_on, str) and calibrate_on != CROSS_FIT:
        raise SurefootError(f"calibrate_on must be cross-fit or a file of other predictions, got '{calibrate_on}'.")
    calibration = scores(predictions, seed=seed)
    source = choose_temperatures(predictions, split, calibrate_on, seed, lambda _: predictions)
    classes = [str(number) for number in range(predictions.num_classes)]
    result = PredictionsAudit(
        subject=subject(name, {}, split, len(predictions), seed, notes=[], classes=classes),
        calibration=calibration,
        temperature=None if source is None else scaled(predictions, source, seed, None),
        geometry=Geometry(mean_estimate(logit_margins(predictions.logits, predictions.labels), seed)),
        reliability=reliability(predictions),
        predictions=predictions,
    )
    if output is not None:
        result.save(output)
    return result
