"""Temperature scaling: one number divides the logits (Guo et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import require
from ..types import Logits, Predictions
from .repairs import FittedOn, Repair
from .scale_search import best_scale


@dataclass(frozen=True, kw_only=True)
class Temperature(Repair):
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
