"""Which images fix a score, and which give its quantile or threshold: no image serves twice.

A promise holds for images like those of its fit only if nothing about the score was chosen on them. Images are told apart by
a hash of their id, which knows neither label nor prediction, so both parts stay samples of the same population.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ..errors import SurefootError, require
from ..keys import derive
from ..types import Predictions, check_labels, check_scores
from .arguments import TUNING
from .bootstrap import GOLDEN, chosen_ids, ids_of, mix
from .calibrators import FittedOn

Array = NDArray[Any]


def uniform_by_image(ids: int | ArrayLike, seed: int, purpose: str) -> Array:
    """A number in [0, 1) for each image, from (seed, purpose, id) alone."""
    hashed = mix(ids_of(ids).astype(np.uint64) * GOLDEN + np.uint64(derive(seed, purpose)))
    return (hashed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def ids_in(predictions: Predictions) -> Array:
    """The images' places in their data set; 0, 1, ... where they are not known."""
    return chosen_ids(None if predictions.indices is None else predictions.indices.cpu().numpy(), len(predictions))


def checked(predictions: Predictions, argument: str = "predictions") -> Predictions:
    """Refuse predictions that no promise can come from: of one class, with NaN, or of other labels than classes."""
    check_scores("logits", predictions.logits)
    check_labels(predictions.labels, predictions.num_classes, len(predictions))
    require(len(predictions) > 0, argument, "of at least one image", 0)
    return predictions


def parted(predictions: Predictions, share: float, seed: int, purpose: str = "tuning") -> tuple[Predictions, Predictions]:
    """About `share` of the images, at least one, and the others, at least one."""
    require(0 < share < 1, purpose, "a share between 0 and 1", share)
    count = len(predictions)
    if count < 2:
        raise SurefootError("predictions must be of at least 2 images, one to fix the score and one for the promise, got 1.")
    order = torch.from_numpy(uniform_by_image(ids_in(predictions), seed, purpose).argsort(kind="stable"))
    first = min(max(round(share * count), 1), count - 1)
    return predictions[order[:first].sort().values], predictions[order[first:].sort().values]


def tuning_part(
    predictions: Predictions, tuning: float | Predictions | None, seed: int
) -> tuple[Predictions, Predictions, FittedOn]:
    """The images that fix a score, those that give the promise, and all of them as what was seen.

    `tuning` is a share of the predictions, or other predictions, whose images must be others.
    """
    checked(predictions)
    if not isinstance(tuning, Predictions):
        first, rest = parted(predictions, TUNING if tuning is None else tuning, seed)
        return first, rest, FittedOn.of(predictions)
    checked(tuning, "tuning")
    classes = predictions.num_classes
    require(tuning.num_classes == classes, "tuning", f"of {classes} classes as the predictions", tuning.num_classes)
    both = FittedOn.of(tuning).overlap(predictions)
    if both:
        raise SurefootError(
            f"tuning must be of other images than the predictions, and {both} of {len(predictions)} are in both."
        )
    return tuning, predictions, FittedOn.of(Predictions.join([tuning, predictions]))


def halves(predictions: Predictions, seed: int) -> torch.Tensor:
    """The fold, 0 or 1, of each image, for cross-fitting; as many of one as of the other."""
    require(len(predictions) >= 2, "predictions", "of at least two images for two folds", len(predictions))
    order = torch.from_numpy(uniform_by_image(ids_in(predictions), seed, "folds").argsort(kind="stable"))
    folds = torch.empty(len(predictions), dtype=torch.long)
    folds[order] = torch.arange(len(predictions)) % 2
    return folds


def refuse_seen(seen: FittedOn, predictions: Predictions) -> None:
    """Refuse to judge a promise on the images that it comes from."""
    both = seen.overlap(predictions)
    if both:
        raise SurefootError(
            f"{both} of {len(predictions)} images were fitted on, so the promise would look kept; "
            "judge it on others, or pass allow_leakage=True."
        )
