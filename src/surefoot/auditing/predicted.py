"""An audit of predictions alone, for models that are not PyTorch, or not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..calibration.bins import reliability
from ..calibration.scoring import scores
from ..errors import SurefootError, require
from ..types import Predictions
from .abstaining import RISKS, thresholds
from .geometric import logit_geometry, logit_points
from .result import PredictionsAudit
from .sliding import temperature_grid
from .subgroups import class_results, group_results
from .subjects import check_provenance, subject
from .temperatures import CROSS_FIT, choose_temperatures, scaled


def audit_predictions(
    predictions: Predictions,
    *,
    name: str = "predictions",
    split: str = "given",
    seed: int = 0,
    calibrate_on: str | Predictions = CROSS_FIT,
    allow_leakage: bool = False,
    risks: Sequence[float] = RISKS,
    groups: Sequence[str] | None = None,
    provenance: Mapping[str, str] | None = None,
    output: str | Path | None = None,
) -> PredictionsAudit:
    """Scores, reliability and temperature of a model that is known by its answers only.

    `provenance` is what else the page should say of how it came about (command).
    """
    for risk in risks:
        require(0 < risk < 1, "risks", "between 0 and 1", risk)
    check_provenance(provenance or {})
    if isinstance(calibrate_on, str) and calibrate_on != CROSS_FIT:
        raise SurefootError(f"calibrate_on must be cross-fit or a file of other predictions, got '{calibrate_on}'.")
    calibration = scores(predictions, seed=seed)
    held_out = calibrate_on if isinstance(calibrate_on, Predictions) else None
    source = choose_temperatures(predictions, split, calibrate_on, seed, held_out, allow_leakage=allow_leakage)
    fitted = () if source is None else tuple(fit.temperature for fit in source.fits)
    classes = [str(number) for number in range(predictions.num_classes)]
    result = PredictionsAudit(
        subject=subject(name, {}, split, len(predictions), seed, notes=[], classes=classes, **(provenance or {})),
        calibration=calibration,
        temperature=None if source is None else scaled(predictions, source, seed, None),
        geometry=logit_geometry(predictions, seed),
        thresholds=thresholds(predictions, risks, seed, held_out),
        classes=class_results(predictions, classes),
        groups=() if groups is None else group_results(predictions, list(groups), seed),
        reliability=reliability(predictions),
        predictions=predictions,
        figures={"temperatures": temperature_grid(predictions, fitted), "geometry": {"logits": logit_points(predictions)}},
    )
    if output is not None:
        result.save(output)
    return result
