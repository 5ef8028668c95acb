"""What prediction sets are worth: how often they hold the right class, and how large they are, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..errors import require
from ..intervals import Estimate, wilson
from .bootstrap import DRAWS, chosen_ids, drawn_copies, estimate, share_estimate

Array = NDArray[Any]
SIZES = (0, 1, 2, 4, 11, 101, 1001)  # where a group of sizes begins


@dataclass(frozen=True)
class GroupCoverage:
    """The images of one class, or those whose sets have from `low` to `high` classes."""

    low: int
    high: int
    images: int
    coverage: Estimate


@dataclass(frozen=True)
class SetScores:
    """Prediction sets of labelled images.

    `by_size` and `by_class` have Wilson's intervals, each on its own; groups without images are left out.
    """

    images: int
    coverage: Estimate
    mean_size: Estimate
    median_size: Estimate
    empty: Estimate
    by_size: tuple[GroupCoverage, ...]
    by_class: tuple[GroupCoverage, ...]


def set_scores(
    sets: ArrayLike, labels: ArrayLike, *, indices: ArrayLike | None = None, intervals: int = DRAWS, seed: int = 0
) -> SetScores:
    """Coverage, size and empty sets, with 95 % bootstrap intervals; `sets` is images x classes, boolean."""
    members, own = np.asarray(sets), np.asarray(labels)
    require(
        members.ndim == 2 and members.dtype == np.bool_,
        "sets",
        "boolean, images x classes",
        (members.shape, str(members.dtype)),
    )
    require(len(members) > 0, "sets", "of at least one image", 0)
    require(own.shape == (len(members),), "labels", f"one for each of {len(members)} images", own.shape)
    inside = bool(own.dtype.kind in "iu" and own.min() >= 0 and own.max() < members.shape[1])
    require(inside, "labels", f"whole numbers from 0 to {members.shape[1] - 1}", (own.min().item(), own.max().item()))
    ids = chosen_ids(indices, len(members))
    covered, sizes = members[np.arange(len(members)), own], members.sum(1)
    points, draws = size_numbers(np.ones((1, len(members))), covered, sizes), [np.zeros((0, 4))]
    for weights in drawn_copies(ids, seed, intervals):
        draws.append(size_numbers(weights, covered, sizes))
    drawn = np.concatenate(draws)
    coverage, mean, median, empty = points[0].tolist()
    return SetScores(
        images=len(members),
        coverage=share_estimate(coverage, drawn[:, 0], len(members)),
        mean_size=estimate(mean, drawn[:, 1]),
        median_size=estimate(median, drawn[:, 2]),
        empty=share_estimate(empty, drawn[:, 3], len(members)),
        by_size=grouped(np.searchsorted(SIZES, sizes, side="right") - 1, sizes, covered),
        by_class=grouped(own, own, covered),
    )


def size_numbers(weights: Array, covered: Array, sizes: Array) -> Array:
    """Coverage, mean and median size and the share of empty sets under whole weights: draws x 4."""
    distinct, inverse = np.unique(sizes, return_inverse=True)
    rows = sparse.csr_array((np.ones(len(sizes)), (inverse, np.arange(len(sizes)))), shape=(len(distinct), len(sizes)))
    counts = (rows @ weights.T).T
    images = counts.sum(1)
    up_to = counts.cumsum(1)
    middle = [distinct[(up_to >= half[:, None]).argmax(1)] for half in (np.ceil(images / 2), np.floor(images / 2) + 1)]
    empty = counts[:, 0] if distinct[0] == 0 else np.zeros(len(images))
    columns = [weights @ covered / images, counts @ distinct / images, (middle[0] + middle[1]) / 2, empty / images]
    return np.stack(columns, 1)


def grouped(groups: Array, values: Array, covered: Array) -> tuple[GroupCoverage, ...]:
    """Coverage in each group that has images, with the lowest and highest value there."""
    estimates = []
    for group in np.unique(groups).tolist():
        own = groups == group
        ends = wilson(int(covered[own].sum()), int(own.sum()))
        share = Estimate(ends["accuracy"], ends["low"], ends["high"])
        estimates.append(GroupCoverage(int(values[own].min()), int(values[own].max()), int(own.sum()), share))
    return tuple(estimates)
