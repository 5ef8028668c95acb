"""Which temperature an audit uses for each image: one that did not see it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..calibration.arguments import CROSS_FIT
from ..calibration.scoring import Scores, scores
from ..calibration.temperature import Temperature, cross_fit_temperature, divided, fit_temperature
from ..data.arguments import SPLITS
from ..data.dataset import Dataset
from ..errors import SurefootError, UnknownName
from ..intervals import Estimate
from ..types import Predictions


@dataclass(frozen=True)
class TemperatureScaling:
    """What temperature scaling would do: every image is scored by a temperature that did not see it.

    `fitted_on` says where the temperatures come from; there are two in cross-fitting, which give the honest scores, and
    `deploy` is the one to use, fitted on all those images. Corrupted ECE is the mean over all corruptions, None where none was
    measured.
    """

    fitted_on: str
    images: int
    temperatures: tuple[float, ...]
    notes: tuple[str, ...]
    calibration: Scores
    corrupted_ece: Estimate | None = None
    corrupted_scaled_ece: Estimate | None = None
    deploy: float | None = None


@dataclass(frozen=True)
class Source:
    """Where temperatures come from, and the one of each image."""

    fitted_on: str
    images: int
    fits: tuple[Temperature, ...]
    temperatures: Tensor


def source_in(data: Dataset) -> str:
    """The calibration split, or cross-fitting where nothing was held out for it."""
    return "calibration" if len(data.calibration) else CROSS_FIT


def check_source(calibrate_on: str | Predictions) -> None:
    """Refuse the training split, and any name that is none of a split."""
    if calibrate_on == "train":
        raise SurefootError("calibrate_on must not be the training split: a model is surer of what it was trained on.")
    if isinstance(calibrate_on, str) and calibrate_on not in (CROSS_FIT, *SPLITS):
        raise UnknownName("source of a temperature", calibrate_on, [CROSS_FIT, *SPLITS])


def choose_temperatures(
    clean: Predictions,
    split: str,
    calibrate_on: str | Predictions,
    seed: int,
    held_out: Predictions | None,
    *,
    allow_leakage: bool = False,
) -> Source | None:
    """Cross-fitting on the audited images, or else `held_out` for it: predictions on a split that was named, or given.

    None for a single image. Images that the fit has seen are refused unless `allow_leakage`.
    """
    if calibrate_on == CROSS_FIT:
        if len(clean) < 2:
            return None
        cross_fit = cross_fit_temperature(clean, seed)
        where = f"two-fold cross-fitting on the {split} split"
        return Source(where, len(clean), cross_fit.fits, cross_fit.temperatures)
    assert held_out is not None
    given = isinstance(calibrate_on, Predictions)
    where = "predictions that were given" if given else f"the {calibrate_on} split"
    if held_out.num_classes != clean.num_classes:
        raise SurefootError(f"calibrate_on must have {clean.num_classes} classes as the model, got {held_out.num_classes}.")
    fit = fit_temperature(held_out)
    fit.calibrate(clean, allow_leakage=allow_leakage or (given and are_others(held_out, clean)))
    return Source(where, len(held_out), (fit,), torch.full((len(clean),), fit.temperature, dtype=torch.float64))


def are_others(given: Predictions, clean: Predictions) -> bool:
    """Whether predictions from elsewhere are of other images though their indices are the same: labels at an index differ."""
    if given.indices is None or clean.indices is None:
        return False
    labels = dict(zip(given.indices.tolist(), given.labels.tolist(), strict=True))
    return any(
        labels.get(index, label) != label for index, label in zip(clean.indices.tolist(), clean.labels.tolist(), strict=True)
    )


def scaled(
    clean: Predictions, source: Source, seed: int, corrupted: Estimate | None = None, corrupted_scaled: Estimate | None = None
) -> TemperatureScaling:
    """The scores with these temperatures, on the images they were chosen for, and what they do to corrupted ECE."""
    notes = tuple(dict.fromkeys(fit.note for fit in source.fits if fit.note))
    values = tuple(fit.temperature for fit in source.fits)
    after = scores(divided(clean, source.temperatures), seed=seed)
    deploy = values[0] if len(values) == 1 else fit_temperature(clean).temperature
    return TemperatureScaling(source.fitted_on, source.images, values, notes, after, corrupted, corrupted_scaled, deploy)
