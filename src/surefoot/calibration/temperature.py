"""Temperature scaling: one number divides the logits (Guo et al. 2017); fitted once, or for each half on the other one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..errors import require
from ..seeds import generator
from ..types import Logits, Predictions
from .calibrators import Calibrator, FittedOn, widened
from .scale_search import best_scale


@dataclass(frozen=True, kw_only=True)
class Temperature(Calibrator):
    """p = softmax(z / T): above 1 makes a model less sure. `passes` is how often the fit read the logits."""

    temperature: float
    passes: int = 0
    keeps_order = True

    def __post_init__(self) -> None:
        require(self.temperature > 0, "temperature", "positive", self.temperature)

    def apply(self, logits: Logits) -> Logits:
        return logits / self.temperature


def fit_temperature(predictions: Predictions) -> Temperature:
    """The temperature that minimises NLL on these predictions, to machine precision.

    Where there is no minimum, because every image is right, the temperature stops at a bound that `note` states.
    """
    found = best_scale(predictions.logits, predictions.labels)
    seen = FittedOn.of(predictions)
    return Temperature(temperature=1 / found.value, passes=found.passes, note=found.note, fitted_on=seen)


@dataclass(frozen=True)
class CrossFit:
    """The temperature of each fold, fitted on the other one, and the fold of each image."""

    fits: tuple[Temperature, Temperature]
    folds: Tensor

    @property
    def temperatures(self) -> Tensor:
        """The temperature of each image."""
        return torch.tensor([fit.temperature for fit in self.fits], dtype=torch.float64)[self.folds]

    def calibrate(self, predictions: Predictions) -> Predictions:
        """The same images in the same order, perhaps corrupted, each by the temperature that did not see it."""
        require(
            len(predictions) == len(self.folds), "predictions", f"of the {len(self.folds)} images of the fit", len(predictions)
        )
        return divided(predictions, self.temperatures)


def divided(predictions: Predictions, temperatures: Tensor) -> Predictions:
    """Each image's logits divided by its own temperature."""
    logits = widened(predictions.logits)
    return replace(predictions, logits=logits / temperatures.to(logits).unsqueeze(1))


def cross_fit_temperature(predictions: Predictions, seed: int = 0) -> CrossFit:
    """Two-fold cross-fitting: halves drawn at random within each class, each scaled by the temperature of the other."""
    require(len(predictions) >= 2, "predictions", "of at least two images for two folds", len(predictions))
    random = torch.randperm(len(predictions), generator=generator(seed, "folds"))
    order = random[predictions.labels.cpu()[random].argsort(stable=True)]  # by class, at random within a class
    folds = torch.empty(len(predictions), dtype=torch.long)
    folds[order] = torch.arange(len(predictions)) % 2
    first, second = (fit_temperature(predictions[(folds != fold).nonzero().squeeze(1)]) for fold in (0, 1))
    return CrossFit((first, second), folds)
