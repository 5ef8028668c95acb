"""Prediction sets: all classes that may be right, with the right one among them as often as promised.

Split conformal prediction: a score s(x, y) says how strange class y is for picture x; of n images that the score has not seen,
the k-th smallest score of the label, k = ceil((n + 1) coverage), is the threshold, and a set holds the classes with scores up
to it. For images like those, the label is in the set with probability at least `coverage`, whatever the model; over draws of
the n images the coverage is Beta(k, n + 1 - k) distributed where scores have no ties. With k > n every class is in every set.

- `lac`: s = 1 - p_y (Sadinle, Lei and Wasserman 2019, "Least ambiguous set-valued classifiers with bounded error levels").
- `aps`: s = the probability of all classes before y, from the likeliest on, plus u p_y (Romano, Sesia and Candes 2020,
  "Classification with valid and adaptive coverage"), u uniform, or 1 where it is not randomised.
- `raps`: that plus weight * max(0, place of y - rank) (Angelopoulos et al. 2021, "Uncertainty sets for image classifiers using
  conformal prediction").

With `by_class` each class has the threshold of its own images (Mondrian; Sadinle et al.), so the promise holds for each class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..errors import UnknownName, require
from ..types import Logits, Predictions, check_scores
from .arguments import SCORES
from .bootstrap import DRAWS, chosen_ids
from .calibrators import FittedOn
from .disjoint import checked, halves, ids_in, refuse_seen, tuning_part, uniform_by_image
from .set_scores import SetScores, set_scores
from .temperature import fit_temperature

WEIGHTS = (0.001, 0.01, 0.1, 0.2, 0.5)  # of RAPS, among which the smallest sets are looked for
CELLS = 2**20  # scores held at once


def quantile_rank(images: int, coverage: float) -> int:
    """ceil((n + 1) coverage), with the coverage taken as the decimal it is written as: 0.9 of 10 is 9, not 9.000...2."""
    return math.ceil((images + 1) * Fraction(repr(float(coverage))))


def conformal_quantile(scores: Tensor, coverage: float) -> float:
    """The score of that rank from below; infinite where there are too few."""
    rank = quantile_rank(len(scores), coverage)
    return float(scores.kthvalue(rank).values) if rank <= len(scores) else math.inf


def least_images(coverage: float) -> int:
    """The fewest images with a finite quantile."""
    exact = Fraction(repr(float(coverage)))
    return math.ceil(exact / (1 - exact))


def lac_scores(probabilities: Tensor) -> Tensor:
    """1 - p, images x classes."""
    return 1 - probabilities


def cumulative_scores(probabilities: Tensor, uniform: Tensor, weight: float = 0.0, rank: int = 0) -> Tensor:
    """APS, and RAPS with a weight, images x classes; of equally likely classes the earlier comes first."""
    stable = {} if torch.compiler.is_compiling() else {"stable": True}  # ONNX knows only its own sort, which is stable too
    ordered, order = probabilities.sort(dim=1, descending=True, **stable)
    before = ordered.cumsum(1) - ordered
    sums = before.clamp_min(0) + uniform[:, None] * ordered
    if weight:
        ranks = torch.arange(1, ordered.shape[1] + 1, dtype=ordered.dtype, device=ordered.device)
        sums = sums + weight * (ranks - rank).clamp_min(0)
    return torch.zeros_like(sums).scatter(1, order, sums)


@dataclass(frozen=True, kw_only=True)
class Score:
    """How strange a class is for a picture: fixed before the images of the quantile are looked at."""

    score: str
    temperature: float = 1.0
    weight: float = 0.0
    rank: int = 0
    randomised: bool = False

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise UnknownName("score of prediction sets", self.score, SCORES)
        require(0 < self.temperature < math.inf, "temperature", "positive", self.temperature)
        require(0 <= self.weight < math.inf, "weight", "at least 0", self.weight)
        require(self.rank >= 0, "rank", "at least 0", self.rank)

    def of(self, logits: Logits, uniform: Tensor | None = None) -> Tensor:
        """Images x classes, in float64; `uniform` has one number for each image where the score is randomised."""
        probabilities = (logits.double() / self.temperature).softmax(1)
        if self.score == "lac":
            return lac_scores(probabilities)
        drawn = torch.ones_like(probabilities[:, 0]) if uniform is None else uniform
        return cumulative_scores(probabilities, drawn, self.weight, self.rank)

    def blocks(self, logits: Logits, ids: Any, seed: int, purpose: str) -> Iterator[tuple[slice, Tensor]]:
        """Scores of some images at a time, on the CPU."""
        rows = max(1, CELLS // logits.shape[1])
        for start in range(0, len(logits), rows):
            part = slice(start, start + rows)
            drawn = torch.from_numpy(uniform_by_image(ids[part], seed, purpose)) if self.randomised else None
            yield part, self.of(logits[part].detach().cpu(), drawn)

    def of_labels(self, predictions: Predictions, seed: int, purpose: str) -> Tensor:
        """The score of each image's label."""
        labels, values = predictions.labels.cpu()[:, None], torch.empty(len(predictions), dtype=torch.float64)
        for part, scores in self.blocks(predictions.logits, ids_in(predictions), seed, purpose):
            values[part] = scores.gather(1, labels[part])[:, 0]
        return values


@dataclass(frozen=True, kw_only=True)
class PredictionSets:
    """A score and its thresholds: one for all classes, or one for each.

    `images` gave the thresholds, `tuned_on` fixed the score. Draws of a randomised score belong to (seed, image), and those of
    the fit are others. `note` says what could not be promised.
    """

    score: Score
    coverage: float
    thresholds: Tensor
    classes: int
    images: int
    tuned_on: int
    seed: int
    fitted_on: FittedOn
    note: str = ""

    def __post_init__(self) -> None:
        count = self.thresholds.numel()
        require(self.thresholds.ndim == 1 and count in (1, self.classes), "thresholds", "one, or one for each class", count)

    @property
    def by_class(self) -> bool:
        return len(self.thresholds) > 1

    def apply(self, logits: Logits | ArrayLike, indices: ArrayLike | Tensor | None = None) -> Tensor:
        """Whether each class is in each image's set: images x classes, boolean.

        `indices` are the images' places in their data set, 0, 1, ... if not given; only randomised scores look at them.
        """
        given = torch.as_tensor(logits)
        check_scores("logits", given)
        require(given.shape[1] == self.classes, "logits", f"of {self.classes} classes as those of the fit", given.shape[1])
        ids = chosen_ids(None if indices is None else np.asarray(torch.as_tensor(indices).cpu()), len(given))
        sets = torch.empty(given.shape, dtype=torch.bool)
        for part, scores in self.score.blocks(given, ids, self.seed, "prediction sets"):
            sets[part] = scores <= self.thresholds
        return sets.to(given.device)

    def members(self, logits: Logits) -> Tensor:
        """The same in one piece for a score that does not draw, as an exported model computes it."""
        require(not self.score.randomised, "prediction sets", "not randomised here (randomised=False)", self.score.score)
        return self.score.of(logits) <= self.thresholds.to(logits.device)

    def judge(
        self, predictions: Predictions, *, allow_leakage: bool = False, intervals: int = DRAWS, seed: int = 0
    ) -> SetScores:
        """Coverage and size of the sets of images that the fit has not seen; `allow_leakage` takes those that it has."""
        if not allow_leakage:
            refuse_seen(self.fitted_on, checked(predictions))
        ids = ids_in(predictions)
        return set_scores(self.apply(predictions.logits, ids), predictions.labels, indices=ids, intervals=intervals, seed=seed)


def fit_prediction_sets(
    predictions: Predictions,
    coverage: float = 0.9,
    score: str = "lac",
    *,
    by_class: bool = False,
    randomised: bool | None = None,
    temperature: float | None = None,
    weight: float | None = None,
    rank: int | None = None,
    tuning: float | Predictions | None = None,
    seed: int = 0,
) -> PredictionSets:
    """Prediction sets that hold the right class with probability `coverage` at least, for images like these.

    The temperature, and for `raps` the weight and the rank, are fixed on `tuning`: a share of the images (a fifth if not given)
    or other predictions. The images that are left give the threshold. What is given is not fitted; with nothing left to fit,
    all images give the threshold. `aps` and `raps` are randomised unless told otherwise.
    """
    require(0 < coverage < 1, "coverage", "between 0 and 1", coverage)
    if score not in SCORES:
        raise UnknownName("score of prediction sets", score, SCORES)
    if score == "lac":
        require(not randomised, "randomised", "for aps and raps", score)
    if score != "raps":
        for name, given in (("weight", weight), ("rank", rank)):
            require(given is None, name, "for raps", score)
    draws = score != "lac" and randomised is not False
    wanted = [temperature] if score != "raps" else [temperature, weight, rank]
    tuned_on = 0
    if None in wanted:
        first, rest, seen = tuning_part(predictions, tuning, seed)
        tuned_on = len(first)
        heat = fit_temperature(first).temperature if temperature is None else temperature
        chosen = Score(score=score, temperature=heat, weight=weight or 0.0, rank=rank or 0, randomised=draws)
        if score == "raps":
            chosen = regularised(chosen, first, coverage, weight, rank, seed)
    else:
        require(tuning is None, "tuning", "left out where nothing is to be fitted", type(tuning).__name__)
        rest, seen = checked(predictions), FittedOn.of(predictions)
        assert temperature is not None
        chosen = Score(score=score, temperature=temperature, weight=weight or 0.0, rank=rank or 0, randomised=draws)
    thresholds = thresholds_of(chosen.of_labels(rest, seed, "calibration scores"), rest, coverage, by_class)
    return PredictionSets(
        score=chosen,
        coverage=coverage,
        thresholds=thresholds,
        classes=predictions.num_classes,
        images=len(rest),
        tuned_on=tuned_on,
        seed=seed,
        fitted_on=seen,
        note=too_few(thresholds, len(rest), coverage),
    )


def thresholds_of(scores: Tensor, predictions: Predictions, coverage: float, by_class: bool) -> Tensor:
    """The quantile of all images' scores, or of those of each class."""
    labels = predictions.labels.cpu()
    groups = [scores[labels == own] for own in range(predictions.num_classes)] if by_class else [scores]
    return torch.tensor([conformal_quantile(group, coverage) for group in groups], dtype=torch.float64)


def too_few(thresholds: Tensor, images: int, coverage: float) -> str:
    """Which promise is kept only by naming everything."""
    infinite, least = int(thresholds.isinf().sum()), least_images(coverage)
    if not infinite:
        return ""
    if len(thresholds) == 1:
        return f"A coverage of {coverage:g} needs at least {least} images, and there are {images}: every set has all classes."
    few = f"{infinite} of {len(thresholds)} classes have fewer than the {least} images that a coverage of {coverage:g} needs"
    return f"{few}: every set has them."


def regularised(
    score: Score, predictions: Predictions, coverage: float, weight: float | None, rank: int | None, seed: int
) -> Score:
    """RAPS tuned as by its authors: the rank is the quantile of the labels' places, the weight gives the smallest sets."""
    fixed: dict[str, Any] = {"temperature": score.temperature, "randomised": score.randomised}
    if rank is None:
        own = predictions.logits.gather(1, predictions.labels[:, None])
        ranks = (predictions.logits > own).sum(1).cpu().double() + 1
        quantile = conformal_quantile(ranks, coverage)
        rank = predictions.num_classes if math.isinf(quantile) else int(quantile)
    if weight is not None:
        return Score(score="raps", weight=weight, rank=rank, **fixed)
    candidates = [Score(score="raps", weight=each, rank=rank, **fixed) for each in WEIGHTS]
    return min(candidates, key=lambda each: mean_size(each, predictions, coverage, seed))


def mean_size(score: Score, predictions: Predictions, coverage: float, seed: int) -> float:
    """The size of the sets on the very images of their quantile, which is good enough to choose a score by."""
    bound = conformal_quantile(score.of_labels(predictions, seed, "tuning scores"), coverage)
    blocks = score.blocks(predictions.logits, ids_in(predictions), seed, "tuning scores")
    return sum(int((scores <= bound).sum()) for _, scores in blocks) / len(predictions)


@dataclass(frozen=True)
class CrossFitSets:
    """The prediction sets of each fold, fitted on the other one, and the fold of each image."""

    fits: tuple[PredictionSets, PredictionSets]
    folds: Tensor

    def apply(self, predictions: Predictions) -> Tensor:
        """The sets of the same images in the same order, perhaps corrupted, each by the fit that did not see it."""
        images = len(self.folds)
        require(len(predictions) == images, "predictions", f"of the {images} images of the fit", len(predictions))
        ids = ids_in(predictions)
        first, second = (fit.apply(predictions.logits, ids) for fit in self.fits)
        return torch.where((self.folds == 0).to(first.device)[:, None], first, second)


def cross_fit_prediction_sets(
    predictions: Predictions, coverage: float = 0.9, score: str = "lac", *, seed: int = 0, **options: Any
) -> CrossFitSets:
    """Two-fold cross-fitting: each half of the images has the sets of the other; options as of `fit_prediction_sets`."""
    folds = halves(checked(predictions), seed)
    first, second = (
        fit_prediction_sets(predictions[(folds != fold).nonzero().squeeze(1)], coverage, score, seed=seed, **options)
        for fold in (0, 1)
    )
    return CrossFitSets((first, second), folds)
