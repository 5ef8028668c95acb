"""How well every class is recognised, beside what an answer without looking would reach.

Accuracy flatters a model on data where one class is common: always answering that class is right as often as it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..intervals import Estimate
from .bootstrap import DRAWS, drawn_copies, estimate

if TYPE_CHECKING:
    from ..types import Predictions

Array = NDArray[Any]


@dataclass(frozen=True)
class Recognition:
    """Scores that weigh classes alike, and the accuracy of a constant answer.

    `chance` is the better of 1 / K and the share of the commonest class, whose name is `majority`; `commonest_answer` is what
    the model says most often, in `commonest_share` of the images.
    """

    balanced_accuracy: Estimate
    macro_f1: Estimate
    matthews: Estimate
    chance: float
    majority: str
    commonest_answer: str
    commonest_share: float


def recognition(
    predictions: Predictions, names: Sequence[str], *, intervals: int = DRAWS, seed: int = 0, ids: Array | None = None
) -> Recognition:
    """Of predictions whose classes have these names."""
    labels, answers = predictions.labels.cpu().numpy(), predictions.classes.cpu().numpy()
    classes = predictions.num_classes
    if ids is None:
        ids = np.arange(len(labels)) if predictions.indices is None else predictions.indices.cpu().numpy()
    right, actual, claimed = counts(labels, answers, classes, np.ones((1, len(labels))))
    points = {name: float(score(right, actual, claimed)[0]) for name, score in SCORES.items()}
    draws: dict[str, list[Array]] = {name: [np.zeros(0)] for name in SCORES}
    for weights in drawn_copies(ids, seed, intervals):
        drawn = counts(labels, answers, classes, weights)
        for name, score in SCORES.items():
            draws[name].append(score(*drawn))
    common, answer = int(actual[0].argmax()), int(claimed[0].argmax())
    return Recognition(
        **{name: estimate(points[name], np.concatenate(draws[name])) for name in SCORES},
        chance=max(1 / classes, float(actual[0, common]) / len(labels)),
        majority=str(names[common]),
        commonest_answer=str(names[answer]),
        commonest_share=float(claimed[0, answer]) / len(labels),
    )


def counts(labels: Array, answers: Array, classes: int, weights: Array) -> tuple[Array, Array, Array]:
    """How many images of each class were recognised, how many there are, and how many answers name it: draws x classes."""
    rows = np.arange(len(labels))

    def summed(columns: Array, kept: Array) -> Array:
        member = sparse.csr_array((kept.astype(float), (columns, rows)), shape=(classes, len(labels)))
        sums: Array = (member @ weights.T).T
        return sums

    every = np.ones(len(labels))
    return summed(labels, labels == answers), summed(labels, every), summed(answers, every)


def balanced_accuracy(right: Array, actual: Array, claimed: Array) -> Array:
    """The mean of the classes' recalls; a class without images does not count."""
    recalls = np.divide(right, actual, out=np.zeros_like(right), where=actual > 0)
    means: Array = recalls.sum(1) / (actual > 0).sum(1)
    return means


def macro_f1(right: Array, actual: Array, claimed: Array) -> Array:
    """The mean of the classes' F1 = 2 TP / (2 TP + FP + FN); a class that neither occurs nor is answered does not count."""
    either = actual + claimed
    f1 = np.divide(2 * right, either, out=np.zeros_like(right), where=either > 0)
    means: Array = f1.sum(1) / (either > 0).sum(1)
    return means


def matthews(right: Array, actual: Array, claimed: Array) -> Array:
    """Matthews correlation for K classes (Gorodkin 2004); 0 for a constant answer, as scikit-learn has it."""
    images = actual.sum(1)
    shared = right.sum(1) * images - (actual * claimed).sum(1)
    spread = (images**2 - (claimed**2).sum(1)) * (images**2 - (actual**2).sum(1))
    correlation: Array = np.divide(shared, np.sqrt(spread), out=np.zeros_like(shared), where=spread > 0)
    return correlation


SCORES = {"balanced_accuracy": balanced_accuracy, "macro_f1": macro_f1, "matthews": matthews}
