"""An audit of predictions alone, for models that are not PyTorch, or not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from ..calibration.arguments import CROSS_FIT
from ..calibration.bins import reliability
from ..calibration.calibrators import digest_of
from ..calibration.recognition import recognition
from ..calibration.scoring import scores
from ..errors import SurefootError, require
from ..files import check_folder, inside, only_writer, remove
from ..measurements.base import CLEAN, Rows
from ..measurements.groups import class_results, confusion, group_results
from ..measurements.pictures import temperature_grid
from ..measurements.predictions import logit_geometry, logit_points
from ..measurements.summaries import columns_of
from ..measurements.temperatures import Source, choose_temperatures, scaled
from ..measurements.thresholds import RISKS, thresholds
from ..models.preflight import class_order
from ..types import Predictions
from .result import DATA, Geometry, PredictionsAudit
from .subjects import at_chance, check_provenance, subject
from .table import part_path, schema_of, write_part
from .table_files import FOLDER


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
    """Scores, reliability and temperature of a model that is known by its predictions only.

    `provenance` is what else the page should say of how it came about (command).

    >>> import torch
    >>> import surefoot as sf
    >>> labels = torch.arange(60) % 3
    >>> logits = 2 * torch.nn.functional.one_hot(labels, 3) + torch.randn(60, 3)
    >>> predictions = sf.Predictions.from_logits(logits, labels)
    >>> found = sf.audit_predictions(predictions)
    >>> found.calibration.accuracy == float((logits.argmax(1) == labels).double().mean())
    True
    """
    check_folder(output)
    for risk in risks:
        require(0 < risk < 1, "risks", "between 0 and 1", risk)
    check_provenance(provenance or {})
    if isinstance(calibrate_on, str) and calibrate_on != CROSS_FIT:
        raise SurefootError(f"calibrate_on must be cross-fit or a file of other predictions, got '{calibrate_on}'.")
    held_out = calibrate_on if isinstance(calibrate_on, Predictions) else None
    if held_out is not None and predictions.class_names and held_out.class_names:
        same = held_out.class_names == predictions.class_names
        require(same, "calibrate_on's classes", f"{', '.join(predictions.class_names)}", ", ".join(held_out.class_names))
    calibration = scores(predictions, seed=seed)
    source = choose_temperatures(predictions, split, calibrate_on, seed, held_out, allow_leakage=allow_leakage)
    fitted = () if source is None else tuple(fit.temperature for fit in source.fits)
    classes = list(predictions.class_names or map(str, range(predictions.num_classes)))
    rows = rows_of(predictions, source)
    known = recognition(predictions, classes, seed=seed)
    findings = (
        at_chance(calibration.accuracy, known),
        class_order(predictions.logits.cpu(), predictions.labels.cpu(), predictions.num_classes),
    )
    result = PredictionsAudit(
        subject=subject(name, {}, split, len(predictions), seed, notes=[], classes=classes, **(provenance or {})),
        calibration=calibration,
        recognition=known,
        preflight=tuple(finding for finding in findings if finding is not None),
        temperature=None if source is None else scaled(predictions, source, seed),
        geometry=Geometry(**logit_geometry(rows, seed)),
        thresholds=thresholds(predictions, risks, seed, held_out),
        classes=class_results(predictions, classes),
        groups=() if groups is None else group_results(predictions, list(groups), seed),
        reliability=reliability(predictions),
        predictions=predictions,
        figures={
            "confusion": confusion(predictions),
            "temperatures": temperature_grid(predictions, fitted),
            "geometry": {"logits": logit_points(rows)},
        },
    )
    if output is not None:
        with only_writer(output):
            data, key = inside(output, DATA), digest_of(predictions)
            result.subject["table"] = key
            for name in (FOLDER, "work"):
                if (data / name).exists():
                    remove(inside(data, name))
            names = {index: str(index) for index in rows["index"].tolist()}
            part = {CLEAN: {**rows, "logits": predictions.logits.float().numpy()}}
            write_part(part_path(data / FOLDER, 0), part, names, schema_of([], predictions.num_classes), key)
            result.save(output)
    return result


def rows_of(predictions: Predictions, source: Source | None) -> Rows:
    """The rows of a table, in the order of the predictions."""
    indices = torch.arange(len(predictions)) if predictions.indices is None else predictions.indices
    temperatures = None if source is None else source.temperatures
    return {"index": indices.numpy(), **columns_of(predictions.logits.float(), predictions.labels, temperatures)}
