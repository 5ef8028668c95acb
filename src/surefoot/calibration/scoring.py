"""Scores of a set of predictions, each with its interval, and the difference of two models."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import SurefootError, UnknownName, require
from ..intervals import Estimate
from ..metrics import find
from ..notebooks import ESTIMATES, digits, estimate_row, html_table
from .bins import ClassSums, debiased_ece_of, max_error_of, rms_of, smooth_ece
from .bootstrap import DRAWS, calibrated_ece, drawn_copies, estimate, norm_estimate, share_estimate, shifted_estimate
from .per_image import PerImage
from .per_image import per_image as read

if TYPE_CHECKING:
    from ..types import Predictions

logger = logging.getLogger("surefoot")
Array = NDArray[Any]
Given: TypeAlias = "Predictions | Iterable[Predictions]"


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

    def _repr_html_(self) -> str:
        """What a notebook shows: every score with its interval."""
        rows = [estimate_row(find(name).label, getattr(self, name)) for name in NAMES]
        low, high = self.ece_if_calibrated
        return html_table("scores", ESTIMATES, rows, [f"ECE if calibrated: {digits(low)} to {digits(high)}"])


MEANS = {"accuracy", "top5", "nll", "brier"}
BINNED = {"ece", "rms", "max_error", "signed_error", "debiased_ece"}
RANKED = {"aurc", "auroc", "adaptive_ece"}
BY_CLASS = {"classwise_ece", "brier_reliability", "brier_resolution", "brier_uncertainty"}
NAMES = tuple(field.name for field in fields(Scores) if field.name != "ece_if_calibrated")
NORMS = {  # of the gaps of bins, by their shares of the images; the debiased ECE aims at the same number as ECE
    "ece": lambda gaps, shares: np.abs(gaps).sum(-1),
    "debiased_ece": lambda gaps, shares: np.abs(gaps).sum(-1),
    "adaptive_ece": lambda gaps, shares: np.abs(gaps).sum(-1),
    "rms": rms_of,
    "max_error": max_error_of,
}
SHIFTED = {"classwise_ece", "smooth_ece", "brier_reliability", "brier_resolution"}
NOT_IN_COLUMNS = BY_CLASS | {"top5"}
CLASS_SUMS = 1 << 24  # numbers of classes, bins and draws that are summed at a time
MANY = ("accuracy", "ece", "nll", "brier", "rms", "signed_error")
MANY_MEANS = ("accuracy", "nll", "brier")  # the first rows of `mean_matrix`
RANKED_AT_ONCE = 2**16  # draws x images
TOGETHER = 64  # conditions of one matrix product
Values = dict[str, Array]


def scores(predictions: Given, bins: int = 15, *, intervals: int = DRAWS, seed: int = 0) -> Scores:
    """Every score, with 95 % bootstrap intervals from `intervals` draws (0: none, which is quick; their ends are NaN).

    Takes predictions or batches of them, such as `StoredPredictions`, of which one is in memory at a time.
    """
    require(bins >= 1, "bins", "at least 1", bins)
    columns = read(predictions, bins)
    assert columns.totals is not None
    absent = np.flatnonzero(np.bincount(columns.labels, minlength=len(columns.totals)) == 0).tolist()
    if absent:
        logger.warning(
            "%d of %d classes never occur among the labels (first: %d); class-wise scores count confidence in them as error.",
            *(len(absent), len(columns.totals), absent[0]),
        )
    by_name = estimates(predictions, NAMES, bins, intervals=intervals, seed=seed, per_image=columns)
    band = estimate(0.0, calibrated_ece(columns.confidences, columns.membership, seed, intervals))
    return Scores(**by_name, ece_if_calibrated=(band.low, band.high))


def difference(
    first: Given, second: Given, bins: int = 15, *, intervals: int = DRAWS, seed: int = 0, names: Sequence[str] = NAMES
) -> dict[str, Estimate]:
    """Each score of the first model minus that of the second, with a paired bootstrap interval: both see the same draws.

    Images are paired by their indices, and those that only one has are left out; by their order where one has no indices.
    """
    known: tuple[list[bool], list[bool]] = ([], [])
    one, two = read(noting(first, known[0]), bins), read(noting(second, known[1]), bins)
    if not (all(known[0]) and all(known[1])):
        one, two = (replace(side, ids=np.arange(len(side))) for side in (one, two))
    elif not np.array_equal(np.sort(one.ids), np.sort(two.ids)):
        first, second = in_common(first, second, one.ids, two.ids)
        one, two = read(first, bins), read(second, bins)
    check_pairs(one, two)
    points, draws = samples(first, one, names, bins, intervals, seed)
    other_points, other_draws = samples(second, two, names, bins, intervals, seed)
    return {name: estimate(points[name] - other_points[name], draws[name] - other_draws[name]) for name in names}


def noting(predictions: Given, known: list[bool]) -> Iterator[Predictions]:
    """The same batches; `known` gets whether each says which images it has."""
    from .softmax_blocks import parts_of

    for part in parts_of(predictions):
        known.append(part.indices is not None)
        yield part


def in_common(first: Given, second: Given, ids: Array, other_ids: Array) -> tuple[Given, Given]:
    """The predictions of both for the images that both have."""
    from .softmax_blocks import Subset

    common = np.intersect1d(ids, other_ids)
    sizes = f"{len(ids)} and {len(other_ids)}"
    if len(common) == 0:
        raise SurefootError(f"A difference needs the same images, and of {sizes} indices none is in both.")
    for given in (first, second):
        check_again(given)
    logger.warning("The difference is of the %d images that both have, of %s.", len(common), sizes)
    return Subset(first, common), Subset(second, common)


def check_pairs(one: PerImage, two: PerImage) -> None:
    """Refuse images that are not the same."""
    order, other = one.ids.argsort(kind="stable"), two.ids.argsort(kind="stable")
    if len(one) != len(two) or not np.array_equal(one.ids[order], two.ids[other]):
        raise SurefootError(f"A difference needs the same images, and these are {len(one)} and {len(two)}.")
    differing = int((one.labels[order] != two.labels[other]).sum())
    if differing:
        raise SurefootError(f"A difference needs the same images, and {differing} of {len(one)} have other labels.")


def check_again(predictions: Given) -> None:
    """Refuse batches that can be read only once."""
    if isinstance(predictions, Iterator):
        raise SurefootError("Intervals read the batches again, and these can be read only once; pass a list or intervals=0.")


def estimates(
    predictions: Given | None,
    names: Sequence[str],
    bins: int = 15,
    *,
    intervals: int = DRAWS,
    seed: int = 0,
    per_image: PerImage | None = None,
) -> dict[str, Estimate]:
    """Some of the scores by name; what they do not need is not computed, and without class-wise ones `per_image` is enough."""
    if per_image is None:
        require(predictions is not None, "predictions", "given unless per_image is", predictions)
        assert predictions is not None
        per_image = read(predictions, bins)
    points, draws = samples(predictions, per_image, names, bins, intervals, seed)
    return {name: interval_of(name, points[name], draws, per_image) for name in names}


def interval_of(name: str, value: float, draws: Values, per_image: PerImage) -> Estimate:
    """A score with its interval: accuracy is a share of images, ECE and its kin are norms of gaps, others are biased too."""
    if name == "accuracy":
        return share_estimate(value, draws[name], len(per_image))
    if name in SHIFTED:
        return shifted_estimate(value, draws[name])
    if name not in NORMS or len(draws[name]) == 0:
        return estimate(value, draws[name])
    if name == "adaptive_ece":
        ones, drawn = np.ones((1, len(per_image))), draws["adaptive_gaps"]
        gaps = per_image.order.ranking(ones).adaptive_gaps(drawn.shape[1])[0]
    else:
        gaps, drawn = per_image.reliability.gaps, draws["gaps"]
    shares = per_image.reliability.shares
    interval = norm_estimate(gaps, drawn, lambda gaps: NORMS[name](gaps, shares))
    return Estimate(value, min(interval.low, value), max(min(interval.high, 1.0), value))  # no gap is above 1


def check_names(predictions: Given | None, per_image: PerImage, names: Sequence[str], bins: int, draws: int) -> None:
    """Refuse scores that are unknown, or that these numbers cannot give."""
    for name in names:
        if name not in NAMES:
            raise UnknownName("score", name, NAMES)
    require(draws >= 0, "intervals", "a number of draws, at least 0", draws)
    require(bins == per_image.bins, "bins", f"{per_image.bins}, as those of the images", bins)
    lacking = [name for name in names if name in NOT_IN_COLUMNS and per_image.entries is None]
    lacking += [name for name in names if name in BY_CLASS and predictions is None and draws and name not in lacking]
    if lacking:
        raise SurefootError(f"{', '.join(lacking)} must be computed from logits, and there are none; pass predictions.")
    if draws and predictions is not None:
        check_again(predictions)


def samples(
    predictions: Given | None, per_image: PerImage, names: Sequence[str], bins: int, draws: int, seed: int
) -> tuple[dict[str, float], Values]:
    """The scores, and those of every bootstrap draw; with the gaps that `interval_of` wants beside ECE and its kin.

    Predictions are read again for class-wise scores alone.
    """
    check_names(predictions, per_image, names, bins, draws)
    points = {name: getattr(per_image.reliability, name) for name in BINNED}  # from the very bins that the diagram draws
    rest = [name for name in names if name not in BINNED]
    ones, sums = np.ones((1, len(per_image))), None if per_image.totals is None else per_image.totals[None]
    whole = weighted_scores(per_image, ones, rest, sums)
    points |= {name: float(whole[name][0]) for name in rest}
    totals = None
    if draws and set(names) & BY_CLASS:
        from .softmax_blocks import weighted_totals

        assert predictions is not None
        totals = weighted_totals(predictions, per_image.ids, seed, draws)
    rows: list[Values] = [{name: np.zeros(0) for name in names}]
    seen = 0
    for weights in drawn_copies(per_image.ids, seed, draws):
        own = None if totals is None else totals[seen : seen + len(weights)]
        rows.append(weighted_scores(per_image, weights, names, own))
        seen += len(weights)
    kept = [*names, *(name for name in ("gaps", "adaptive_gaps") if len(rows) > 1 and name in rows[1])]
    return points, {name: np.concatenate([row[name] for row in rows if name in row]) for name in kept}


def weighted_scores(per_image: PerImage, weights: Array, names: Sequence[str], totals: Array | None) -> Values:
    """Scores under whole weights (draws x images), one for each draw; all weights 1 give the scores themselves.

    `totals` is what class-wise scores need: the weighted sum of every class's probability, draws x classes.
    """
    values: Values = {}
    wanted = set(names)
    images = weights.sum(1)
    if wanted & (MEANS | BY_CLASS):
        values |= dict(zip(per_image.means, per_image.mean_matrix @ weights.T / images, strict=True))
    if wanted & BINNED:
        values |= binned_scores(per_image.binned_matrix @ weights.T, images, per_image.bins)
    if wanted & RANKED:
        values |= ranked_scores(per_image, weights)
    if "smooth_ece" in wanted:
        values["smooth_ece"] = smooth_ece(per_image.confidences, per_image.correct, weights)
    if wanted & BY_CLASS:
        assert totals is not None
        by_class = ("classwise_ece", "brier_reliability", "brier_uncertainty")
        step = max(1, CLASS_SUMS // per_image.class_matrix.shape[0])  # draws at a time: there may be very many classes
        blocks: list[list[Array]] = []
        for some in (slice(start, start + step) for start in range(0, len(weights), step)):
            table = ClassSums.of(per_image.class_matrix, weights[some], totals[some], per_image.bins)
            blocks.append([getattr(table, name) for name in by_class])  # and the sums go
        values |= {name: np.concatenate(parts) for name, parts in zip(by_class, zip(*blocks, strict=True), strict=True)}
        # reliability - resolution + uncertainty = Brier: the resolution with its parts within bins (Stephenson et al. 2008)
        values["brier_resolution"] = values["brier_reliability"] + values["brier_uncertainty"] - values["brier"]
    return values


def ranked_scores(per_image: PerImage, weights: Array) -> Values:
    """Scores by the order of the confidences, for as many draws at once as the cache holds."""
    size = max(1, RANKED_AT_ONCE // len(per_image))
    rankings = (per_image.order.ranking(weights[start : start + size]) for start in range(0, len(weights), size))
    rows = [(ranking.aurc, ranking.auroc, ranking.adaptive_gaps(per_image.bins)) for ranking in rankings]
    aurc, auroc, gaps = (np.concatenate(part) for part in zip(*rows, strict=True))
    return {"aurc": aurc, "auroc": auroc, "adaptive_gaps": gaps, "adaptive_ece": np.abs(gaps).sum(1)}


def binned_scores(sums: Array, images: Array, bins: int) -> Values:
    """Scores from the bins of every draw: the products of `binned_matrix`, (3 x bins) x draws."""
    gaps, shares, variances = (part.T for part in sums.reshape(3, bins, -1))
    gaps, shares = gaps / images[:, None], shares / images[:, None]
    return {
        "ece": np.abs(gaps).sum(1),
        "rms": rms_of(gaps, shares),
        "max_error": max_error_of(gaps, shares),
        "signed_error": gaps.sum(1),
        "debiased_ece": debiased_ece_of(gaps, variances, images),
        "gaps": gaps,
    }


def samples_of_many(
    items: Sequence[PerImage], names: Sequence[str], bins: int, draws: int, seed: int
) -> list[tuple[dict[str, float], Values]]:
    """What `samples` gives for each of several conditions on the same images, with the draws made once for all of them."""
    for name in names:
        if name not in MANY:
            raise UnknownName("score of many conditions", name, MANY)
    for item in items:
        check_names(None, item, names, bins, draws)
        if not np.array_equal(item.ids, items[0].ids):
            raise SurefootError("Conditions must be on the same images in the same order, and their ids differ.")
    drawn: list[tuple[dict[str, float], Values]] = []
    for start in range(0, len(items), TOGETHER):
        drawn += samples_together(items[start : start + TOGETHER], names, draws, seed)
    return drawn


def samples_together(
    items: Sequence[PerImage], names: Sequence[str], draws: int, seed: int
) -> list[tuple[dict[str, float], Values]]:
    """One product for all conditions: their rows of means and bins, one below the other, times the weights."""
    means, bins = MANY_MEANS if set(names) & MEANS else (), items[0].bins if set(names) & BINNED else 0
    parts = [part for item in items for part in (item.mean_matrix[: len(means)], item.binned_matrix[: 2 * bins])]
    matrix = sparse.vstack(parts, format="csr")
    drawn: dict[str, Array] = {name: np.empty((len(items), draws)) for name in (*means, "ece", "rms", "signed_error")}
    gaps, seen = np.empty((len(items), bins, draws)), 0
    for weights in drawn_copies(items[0].ids, seed, draws):
        span = slice(seen, seen := seen + len(weights))
        shares = (matrix @ weights.T / weights.sum(1)).reshape(len(items), -1, len(weights))
        for row, name in enumerate(means):
            drawn[name][:, span] = shares[:, row]
        own, counts = (shares[:, len(means) + k * bins : len(means) + (k + 1) * bins] for k in (0, 1))
        gaps[..., span] = own
        drawn["ece"][:, span], drawn["signed_error"][:, span] = np.abs(own).sum(1), own.sum(1)
        drawn["rms"][:, span] = rms_of(own.swapaxes(1, 2), counts.swapaxes(1, 2))
    by_item = []
    for index, item in enumerate(items):
        points = {name: getattr(item.reliability, name) for name in BINNED}
        points |= {name: float(item.means[name].mean()) for name in names if name in means}
        values = {name: drawn[name][index] for name in names}
        by_item.append((points, {**values, "gaps": gaps[index].T} if bins and draws else values))
    return by_item
