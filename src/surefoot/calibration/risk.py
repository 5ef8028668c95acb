"""The confidence from which a model may answer alone, with an error rate that is promised and not just observed.

R(t) is the error rate among images like these whose confidence is at least t. For a threshold t that was fixed beforehand, the
number of mistakes among the n images that pass it is Binomial(n, R(t)), so "R(t) > risk" has the exact p-value
P(Binomial(n, risk) <= mistakes). Thresholds are tested one after another, each at level 1 - confidence, until one is not
rejected: all that were rejected hold at once with probability `confidence` (fixed-sequence testing: Angelopoulos et al. 2021,
"Learn then test: calibrating predictive algorithms to achieve risk control"; selective prediction: Geifman and El-Yaniv 2017,
"Selective classification for deep neural networks"). The last of them, which answers most, is the threshold.

Where to begin and which steps to take is decided on other images, so the sequence is fixed before the tests. Too strict a first
threshold passes too few images to show anything, so the first is the one that promises the smallest p-value there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr
from torch import Tensor

from ..errors import require
from ..types import Logits, Predictions, check_scores
from .calibrators import FittedOn
from .disjoint import checked, halves, tuning_part

Array = NDArray[Any]
STEPS = 100  # thresholds in a sequence
CELLS = 2**20  # probabilities held at once


def p_value(mistakes: ArrayLike, answered: ArrayLike, risk: float) -> Array:
    """The chance of so few mistakes where the true error rate is `risk`; 1 where nothing was answered."""
    return np.asarray(bdtr(np.asarray(mistakes, dtype=np.float64), np.asarray(answered), risk))


def least_answers(risk: float, confidence: float) -> int:
    """The fewest answers that can promise an error rate, if none of them is wrong."""
    level = 1 - confidence
    guess = max(1, math.ceil(math.log1p(-confidence) / math.log1p(-risk)) - 1)
    return guess if p_value(0, guess, risk) <= level else guess + 1


def confidences_of(logits: Logits) -> Tensor:
    """The probability of the predicted class, in float64."""
    return logits.double().softmax(1).amax(1)


def confidences_by_block(logits: Logits) -> Tensor:
    """The same on the CPU, for some images at a time."""
    rows = max(1, CELLS // logits.shape[1])
    blocks = [confidences_of(logits[start : start + rows].detach().cpu()) for start in range(0, len(logits), rows)]
    return torch.cat(blocks) if blocks else torch.zeros(0, dtype=torch.float64)


@dataclass(frozen=True)
class Outcomes:
    """The confidence of each image, and whether its answer is wrong: all that a threshold is fitted to."""

    confidences: Array
    wrong: Array

    @classmethod
    def of(cls, predictions: Predictions) -> Outcomes:
        return cls(confidences_by_block(predictions.logits).numpy(), ~predictions.correct.cpu().numpy())

    def __len__(self) -> int:
        return len(self.wrong)

    def __getitem__(self, chosen: Array) -> Outcomes:
        return Outcomes(self.confidences[chosen], self.wrong[chosen])

    def above(self, thresholds: ArrayLike) -> tuple[Array, Array]:
        """How many images pass each threshold, and how many of them are wrong."""
        order = self.confidences.argsort()
        first = np.searchsorted(self.confidences[order], np.asarray(thresholds, dtype=np.float64), side="left")
        mistakes = np.append(self.wrong[order][::-1].cumsum()[::-1], 0)
        return len(self) - first, mistakes[first]


@dataclass(frozen=True, kw_only=True)
class RiskThreshold:
    """The confidence from which answers are wrong in at most `risk` of cases; None where nothing can be promised.

    `answered` of `images` passed it, `mistakes` of them wrong; without a threshold these are of the first one tested. `note`
    says why there is none.
    """

    threshold: float | None
    risk: float
    confidence: float
    answered: int
    mistakes: int
    images: int
    tuned_on: int
    fitted_on: FittedOn
    note: str = ""

    def answers(self, logits: Logits | ArrayLike) -> Tensor:
        """Whether the model may answer each image alone; none where nothing can be promised."""
        given = torch.as_tensor(logits)
        check_scores("logits", given)
        bound = 2.0 if self.threshold is None else self.threshold
        return (confidences_by_block(given) >= bound).to(given.device)

    def passes(self, logits: Logits) -> Tensor:
        """The same in one piece and without a check, as an exported model computes it."""
        bound = 2.0 if self.threshold is None else self.threshold
        return confidences_of(logits) >= bound


def fit_risk_threshold(
    predictions: Predictions,
    risk: float = 0.01,
    confidence: float = 0.95,
    *,
    tuning: float | Predictions | None = None,
    seed: int = 0,
) -> RiskThreshold:
    """The lowest confidence that can be shown to have an error rate of at most `risk`, with probability `confidence`.

    `tuning`, a share of the images (a fifth if not given) or other predictions, fixes the sequence of thresholds; the images
    that are left test it.

    Examples:
        >>> import torch
        >>> import surefoot as sf
        >>> sure = torch.tensor([[0.99, 0.01]]).repeat(400, 1)  # 400 confident predictions, all right
        >>> predictions = sf.Predictions.from_probabilities(sure, torch.zeros(400, dtype=torch.int64))
        >>> sf.calibration.fit_risk_threshold(predictions, risk=0.02).threshold is not None
        True
        >>> sf.calibration.fit_risk_threshold(predictions, risk=0.001).threshold is None  # too few to promise that
        True
    """
    require(0 < risk < 1, "risk", "between 0 and 1", risk)
    require(0 < confidence < 1, "confidence", "between 0 and 1", confidence)
    first, rest, seen = tuning_part(predictions, tuning, seed)
    result = tested(Outcomes.of(first), Outcomes.of(rest), risk, confidence)
    return RiskThreshold(risk=risk, confidence=confidence, tuned_on=len(first), fitted_on=seen, **result)


def tested(first: Outcomes, rest: Outcomes, risk: float, confidence: float) -> dict[str, Any]:
    """The last threshold of the sequence of `first` that is rejected on `rest`, and the counts there."""
    sequence = threshold_sequence(first, len(rest), risk)
    answered, mistakes = rest.above(sequence)
    rejected = p_value(mistakes, answered, risk) <= 1 - confidence
    passed = len(sequence) if rejected.all() else int(rejected.argmin())
    last = max(passed - 1, 0)
    counts: dict[str, Any] = {"answered": int(answered[last]), "mistakes": int(mistakes[last]), "images": len(rest)}
    note = "" if passed else why_not(risk, confidence, **counts)
    return {"threshold": float(sequence[last]) if passed else None, "note": note, **counts}


def threshold_sequence(outcomes: Outcomes, images: int, risk: float) -> Array:
    """Falling thresholds, from the one that promises the smallest p-value on so many images on.

    Candidates are quantiles of the confidences here. Mistakes to come are foreseen by Laplace's rule, (m + 1) / (n + 2).
    """
    candidates = np.unique(np.quantile(outcomes.confidences, np.arange(STEPS) / STEPS, method="lower"))[::-1]
    answered, mistakes = outcomes.above(candidates)
    expected = np.rint(answered / len(outcomes) * images).astype(np.int64)
    foreseen = p_value(np.floor(expected * (mistakes + 1) / (answered + 2)), expected, risk)
    return candidates[int(foreseen.argmin()) :]


def why_not(risk: float, confidence: float, answered: int, mistakes: int, images: int) -> str:
    """Why nothing can be promised: too few images, or too many mistakes."""
    promise = f"an error rate of {100 * risk:.3g} % with probability {confidence:g}"
    least = least_answers(risk, confidence)
    if images < least:
        needs = f"{promise} needs {least} answers without a mistake, and {images} images were there to test it"
        return f"No threshold can be promised with so few images: {needs}."
    wrong = f"{mistakes} of the {answered} surest answers are wrong"
    return f"No threshold can be promised: {wrong}, which does not show {promise}."


@dataclass(frozen=True)
class CrossFitRisk:
    """The threshold of each fold, fitted on the other one, and the fold of each image."""

    fits: tuple[RiskThreshold, RiskThreshold]
    folds: Tensor

    @property
    def thresholds(self) -> Sequence[float | None]:
        return tuple(fit.threshold for fit in self.fits)

    def answers(self, predictions: Predictions) -> Tensor:
        """Whether each of the same images, perhaps corrupted, is answered, by the threshold that did not see it."""
        images = len(self.folds)
        require(len(predictions) == images, "predictions", f"of the {images} images of the fit", len(predictions))
        first, second = (fit.answers(predictions.logits) for fit in self.fits)
        return torch.where((self.folds == 0).to(first.device), first, second)


def cross_fit_risk_threshold(
    predictions: Predictions,
    risk: float = 0.01,
    confidence: float = 0.95,
    *,
    tuning: float | None = None,
    seed: int = 0,
) -> CrossFitRisk:
    """Two-fold cross-fitting: each half of the images has the threshold of the other, and each promise holds by itself."""
    folds = halves(checked(predictions), seed)
    first, second = (
        fit_risk_threshold(predictions[(folds != fold).nonzero().squeeze(1)], risk, confidence, tuning=tuning, seed=seed)
        for fold in (0, 1)
    )
    return CrossFitRisk((first, second), folds)
