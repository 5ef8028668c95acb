"""Scores of a set of predictions, each with its interval, and the difference of two models."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from ..errors import SurefootError, UnknownName, require
from ..types import Estimate, Predictions
from .answers import Answers, answer, parts_of, weighted_totals
from .bins import class_sums, debiased_ece_of, max_error_of, rms_of
from .bootstrap import DRAWS, calibrated_ece, estimate, norm_estimate, resamples, share_estimate, shifted_estimate
from .ranking import rank
from .smooth_ece import smooth_ece

logger = logging.getLogger("surefoot")
Given = Predictions | Iterable[Predictions]


@dataclass(frozen=True)
class Scores:
    """How right a model is and how well it knows it.

    `ece_if_calibrated` is the range that ECE would have, in 95 % of cases, if the model were perfectly calibrated.
    """

    accuracy: Estimate
    top5: Estimate
    nll: Estimate
    brier: Estimate
    brier_reliability: Estimate
    brier_resolution: Estimate
    brier_uncertainty: Estimate
    ece: Estimate
    rms: Estimate
    max_error: Estimate
    signed_error: Estimate
    debiased_ece: Estimate
    adaptive_ece: Estimate
    classwise_ece: Estimate
    smooth_ece: Estimate
    aurc: Estimate
    auroc: Estimate
    ece_if_calibrated: tuple[float, float]


MEANS = {"accuracy", "top5", "nll", "brier"}
BINNED = {"ece", "rms", "max_error", "signed_error", "debiased_ece"}
RANKED = {"aurc", "auroc", "adaptive_ece"}
BY_CLASS = {"classwise_ece", "brier_reliability", "brier_resolution", "brier_uncertainty"}
NAMES = tuple(field.name for field in fields(Scores) if field.name != "ece_if_calibrated")
NORMS = {  # of the gaps of bins, by their shares of the images; the debiased ECE aims at the same number as ECE
    "ece": lambda gaps, shares: gaps.abs().sum(-1),
    "debiased_ece": lambda gaps, shares: gaps.abs().sum(-1),
    "adaptive_ece": lambda gaps, shares: gaps.abs().sum(-1),
    "rms": rms_of,
    "max_error": max_error_of,
}
SHIFTED = {"classwise_ece", "smooth_ece", "brier_reliability", "brier_resolution"}
Values = dict[str, Tensor]
Totals = Callable[[Tensor], Tensor]


def scores(predictions: Given, bins: int = 15, *, intervals: int = DRAWS, seed: int = 0) -> Scores:
    """Every score, with 95 % bootstrap intervals from `intervals` draws (0: none, which is quick; their ends are NaN).

    Takes predictions or batches of them, such as `StoredPredictions`, of which one is in memory at a time.
    """
    require(bins >= 1, "bins", "at least 1", bins)
    answers = answer(predictions, bins)
    absent = (answers.labels.bincount(minlength=len(answers.totals)) == 0).nonzero().squeeze(1).tolist()
    if absent:
        logger.warning(
            "%d of %d classes never occur among the labels (first: %d); class-wise scores count confidence in them as error.",
            *(len(absent), len(answers.totals), absent[0]),
        )
    found = estimates(predictions, NAMES, bins, intervals=intervals, seed=seed, answers=answers)
    band = estimate(
        0.0, calibrated_ece(answers.confidences, answers.membership, seed, intervals) if intervals else torch.zeros(0)
    )
    return Scores(**found, ece_if_calibrated=(band.low, band.high))


def difference(
    first: Given, second: Given, bins: int = 15, *, intervals: int = DRAWS, seed: int = 0, names: Sequence[str] = NAMES
) -> dict[str, Estimate]:
    """Each score of the first model minus that of the second, with a paired bootstrap interval: both see the same draws."""
    places: tuple[list[Tensor | None], list[Tensor | None]] = ([], [])
    one, two = answer(noting(first, places[0]), bins), answer(noting(second, places[1]), bins)
    if not torch.equal(one.labels, two.labels):
        raise SurefootError(
            f"A difference needs the same images in the same order, and the labels differ ({len(one)}, {len(two)})."
        )
    mine, other = ([place.cpu().long() for place in held if place is not None] for held in places)
    if len(mine) == len(places[0]) and len(other) == len(places[1]):
        differing = int((torch.cat(mine) != torch.cat(other)).sum())
        if differing:
            raise SurefootError(
                f"A difference needs the same images in the same order, and {differing} of {len(one)} indices differ."
            )
    points, draws = samples(first, one, names, bins, intervals, seed)
    other_points, other_draws = samples(second, two, names, bins, intervals, seed)
    return {name: estimate(points[name] - other_points[name], draws[name] - other_draws[name]) for name in names}


def noting(predictions: Given, places: list[Tensor | None]) -> Iterator[Predictions]:
    """The same batches; the indices of their images are kept in `places`."""
    for part in parts_of(predictions):
        places.append(part.indices)
        yield part


def estimates(
    predictions: Given,
    names: Sequence[str],
    bins: int = 15,
    *,
    intervals: int = DRAWS,
    seed: int = 0,
    answers: Answers | None = None,
) -> dict[str, Estimate]:
    """Some of the scores by name; what they do not need is not computed."""
    held = answers or answer(predictions, bins)
    points, draws = samples(predictions, held, names, bins, intervals, seed)
    return {name: interval_of(name, points[name], draws, held) for name in names}


def interval_of(name: str, value: float, draws: Values, answers: Answers) -> Estimate:
    """A score with its interval: accuracy is a share of images, ECE and its kin are norms of gaps, others are biased too."""
    if name == "accuracy":
        return share_estimate(value, draws[name], len(answers))
    if name in SHIFTED:
        return shifted_estimate(value, draws[name])
    if name not in NORMS or len(draws[name]) == 0:
        return estimate(value, draws[name])
    if name == "adaptive_ece":
        ones, drawn = torch.ones(1, len(answers), dtype=torch.float64), draws["adaptive_gaps"]
        gaps = rank(answers.confidences, answers.correct, ones).adaptive_gaps(drawn.shape[1])[0]
    else:
        gaps, drawn = answers.reliability.gaps, draws["gaps"]
    found = norm_estimate(gaps, drawn, lambda gaps: NORMS[name](gaps, answers.reliability.shares))
    return Estimate(value, min(found.low, value), max(found.high, value))


def samples(
    predictions: Given, answers: Answers, names: Sequence[str], bins: int, draws: int, seed: int
) -> tuple[dict[str, float], Values]:
    """The scores, and those of every bootstrap draw; with the gaps that `interval_of` wants beside ECE and its kin."""
    for name in names:
        if name not in NAMES:
            raise UnknownName("score", name, NAMES)
    if draws and not isinstance(predictions, Predictions) and iter(predictions) is predictions:
        raise SurefootError("Intervals read the batches again, and these can be read only once; pass a list or intervals=0.")
    points = {name: getattr(answers.reliability, name) for name in BINNED}  # from the very bins that the diagram draws
    ones, rest = torch.ones(1, len(answers), dtype=torch.float64), [name for name in names if name not in BINNED]
    whole = weighted_scores(answers, ones, rest, bins, lambda _: answers.totals[None])
    points |= {name: float(whole[name]) for name in rest}
    rows: list[Values] = [{name: torch.zeros(0, dtype=torch.float64) for name in names}]
    for weights in resamples(len(answers), seed, draws):
        rows.append(weighted_scores(answers, weights, names, bins, lambda weights: weighted_totals(predictions, weights)))
    kept = [*names, *(name for name in ("gaps", "adaptive_gaps") if len(rows) > 1 and name in rows[1])]
    return points, {name: torch.cat([row[name] for row in rows if name in row]) for name in kept}


def weighted_scores(answers: Answers, weights: Tensor, names: Sequence[str], bins: int, totals: Totals) -> Values:
    """Scores under weights (draws x images), one for each draw; all weights 1 give the scores themselves."""
    found: Values = {}
    wanted = set(names)
    if wanted & (MEANS | BY_CLASS):
        means = {"accuracy": answers.correct, "top5": answers.top5, "nll": answers.losses, "brier": answers.squares}
        sums = weights @ torch.stack([values.double() for values in means.values()], 1)
        found |= dict(zip(means, (sums / len(answers)).unbind(1), strict=True))
    if wanted & BINNED:
        found |= binned_scores(answers, weights, bins)
    if wanted & RANKED:
        ranking = rank(answers.confidences, answers.correct, weights)
        found |= {"aurc": ranking.aurc, "auroc": ranking.auroc, "adaptive_gaps": ranking.adaptive_gaps(bins)}
        found["adaptive_ece"] = found["adaptive_gaps"].abs().sum(1)
    if "smooth_ece" in wanted:
        found["smooth_ece"] = smooth_ece(answers.confidences, answers.correct, weights)
    if wanted & BY_CLASS:
        table = class_sums(answers.entries, answers.labels, weights, totals(weights), bins)
        found |= {name: getattr(table, name) for name in ("classwise_ece", "brier_reliability", "brier_uncertainty")}
        # reliability - resolution + uncertainty = Brier: the resolution with its parts within bins (Stephenson et al. 2008)
        found["brier_resolution"] = found["brier_reliability"] + found["brier_uncertainty"] - found["brier"]
    return found


def binned_scores(answers: Answers, weights: Tensor, bins: int) -> Values:
    """Scores from the bins of every draw."""
    count = len(answers)
    gaps, counts, variances = (weights @ answers.binned_columns).view(len(weights), 3, bins).unbind(1)
    gaps, shares = gaps / count, counts / count
    return {
        "ece": gaps.abs().sum(1),
        "rms": rms_of(gaps, shares),
        "max_error": max_error_of(gaps, shares),
        "signed_error": gaps.sum(1),
        "debiased_ece": debiased_ece_of(gaps, variances, count),
        "gaps": gaps,
    }
