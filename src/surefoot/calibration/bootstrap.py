"""Intervals by drawing images again, and the band that a perfectly calibrated model would show.

A draw gives every image a Poisson(1) number of copies (Hanley and MacGibbon 2006, "Creating non-parametric bootstrap samples
using Poisson frequencies"). The number is a hash of (seed, draw, image id), so a subset of the images has the copies it has
in the whole set, and two models are compared draw by draw on the images that both have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..errors import require
from ..intervals import Estimate, wilson
from ..keys import derive

Array = NDArray[Any]
DRAWS = 1000
CHUNK = 2**20  # draws x images held at once
ENLARGED, SHRUNK, STEPS = 10.0, 1e6, 24  # how far an interval is sought, and how finely
NO_GAP = 1e-200  # the square of a gap that vanishes at once, and still no overflow
PIECES = 4  # numbers of 16 bits in a hash of 64
HASHED = 2**13  # hashes computed at once, which stay in the cache
GOLDEN, FIRST, SECOND = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def poisson_table() -> Array:
    """The Poisson(1) number of each number of 16 bits, by the inverse of its distribution."""
    shares = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])
    return np.searchsorted(np.round(shares * 2**16), np.arange(2**16), side="right").astype(np.uint8)


COPIES = poisson_table()


def mix(numbers: Array) -> Array:
    """The finaliser of splitmix64 (Steele et al. 2014, "Fast splittable pseudorandom number generators"), in place."""
    shifted = numbers >> np.uint64(30)
    numbers ^= shifted
    numbers *= FIRST
    numbers ^= np.right_shift(numbers, np.uint64(27), out=shifted)
    numbers *= SECOND
    numbers ^= np.right_shift(numbers, np.uint64(31), out=shifted)
    return numbers


def ids_of(images: int | ArrayLike) -> Array:
    """Ids of images, one whole number for each: 0, 1, ... for a count."""
    if isinstance(images, int | np.integer):
        return np.arange(images)
    ids = np.asarray(images)
    require(ids.ndim == 1 and ids.dtype.kind in "iu", "ids", "one whole number for each image", ids.dtype)
    return ids


def states(images: int | ArrayLike, seed: int) -> Array:
    """A number of 64 bits for each image, from which its copies in every draw follow."""
    return mix(ids_of(images).astype(np.uint64) * GOLDEN + np.uint64(derive(seed, "bootstrap")))


def copies(states: Array, first: int, last: int) -> Array:
    """How often draws `first` (a multiple of 4) to `last` take each image: images x draws, float64."""
    steps = np.arange(first // PIECES + 1, -(-last // PIECES) + 1, dtype=np.uint64) * GOLDEN
    out = np.empty((len(states), last - first))
    rows = max(1, HASHED // max(1, len(steps)))
    for start in range(0, len(states), rows):
        pieces = mix(states[start : start + rows, None] + steps).astype("<u8", copy=False).view("<u2")
        out[start : start + rows] = COPIES.take(pieces)[:, : last - first]
    return out


def empty_draws(states: Array, draws: int) -> Array:
    """Which draws take no image at all, which happens for a few images only."""
    empty = np.ones(draws, dtype=bool)
    for start in range(0, len(states), 64):
        empty &= ~copies(states[start : start + 64], 0, draws).any(0)
        if not empty.any():
            break
    return empty


def draw_spans(images: int, draws: int) -> Iterator[tuple[int, int]]:
    """First and last of some draws at a time, whose weights may be held at once."""
    size = max(1, CHUNK // max(images, 1) // PIECES) * PIECES
    for start in range(0, draws, size):
        yield start, min(start + size, draws)


def drawn_copies(images: int | ArrayLike, seed: int, draws: int = DRAWS) -> Iterator[Array]:
    """How often each image is drawn, some draws at a time: draws x images, whole numbers in float64.

    A draw's total is Poisson too; a draw of no image at all is replaced by every image once. In memory the draws of an image
    are neighbours.
    """
    require(draws >= 0, "intervals", "a number of draws, at least 0", draws)
    hashes = states(images, seed)
    empty = empty_draws(hashes, draws)
    for first, last in draw_spans(len(hashes), draws):
        counts = copies(hashes, first, last)
        counts[:, empty[first:last]] = 1
        yield counts.T


def resamples(images: int | ArrayLike, seed: int, draws: int = DRAWS) -> Iterator[Array]:
    """Weights of the images, a count or an array of ids, some draws at a time: draws x images, of sum `images` in each draw.

    The weight of an image depends on (seed, draw, id) and, by that sum alone, on the other images.
    """
    for counts in drawn_copies(images, seed, draws):
        yield counts * (counts.shape[1] / counts.sum(1, keepdims=True))


def resampled_sums(values: ArrayLike, seed: int, draws: int = DRAWS, ids: ArrayLike | None = None) -> Array:
    """Column sums of `values` (images x columns) over images drawn with replacement: draws x columns."""
    values = np.asarray(values, dtype=np.float64)
    matrix = sparse.csr_array(values.T)
    rows = [np.zeros((0, values.shape[1]))]
    for counts in drawn_copies(chosen_ids(ids, len(values)), seed, draws):
        rows.append((matrix @ counts.T * (len(values) / counts.sum(1))).T)
    return np.concatenate(rows)


def chosen_ids(ids: ArrayLike | None, images: int) -> Array:
    """The ids that were given, one for each image, or 0, 1, ..."""
    chosen = ids_of(images if ids is None else ids)
    require(len(chosen) == images, "ids", f"one for each of {images} images", len(chosen))
    return chosen


def mean_estimate(values: ArrayLike, seed: int, draws: int = DRAWS, ids: ArrayLike | None = None) -> Estimate:
    """The mean of one value per image, with its percentile interval."""
    values = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    return estimate(float(values.mean()), resampled_sums(values, seed, draws, ids)[:, 0] / len(values))


def not_nan(samples: ArrayLike) -> Array:
    values = np.asarray(samples, dtype=np.float64)
    return values[~np.isnan(values)]


def estimate(value: float, samples: ArrayLike) -> Estimate:
    """A value with the 2.5 and 97.5 percentiles of its bootstrap samples, which contain it; NaN without samples."""
    defined = not_nan(samples)
    if len(defined) == 0:
        return Estimate(value, math.nan, math.nan)
    low, high = np.quantile(defined, [0.025, 0.975]).tolist()
    return Estimate(value, min(low, value), max(high, value))


def shifted_estimate(value: float, samples: ArrayLike) -> Estimate:
    """The same for a score that noise makes larger: the samples without what drawing adds to them and to the value itself."""
    defined = not_nan(samples)
    return estimate(value, np.maximum(defined - 2 * (defined.mean() - value), 0) if len(defined) else defined)


Norm = Callable[[Array], Any]  # of the last dimension


def norm_estimate(gaps: ArrayLike, samples: ArrayLike, norm: Norm) -> Estimate:
    """A norm of gaps, such as ECE, with the 95 % interval of the norm of the true gaps; `samples` is draws x gaps.

    A norm of noisy gaps is too large, and of gaps that are drawn again larger still: their percentiles lie above the truth. So
    a test is inverted: t is in the interval unless a norm as small as ours, or as large, has a chance below 2.5 % where the
    true gaps have norm t. Such gaps are ours times g^2 / (g^2 + x s^2), s their deviation, so that doubtful ones vanish
    first, or ours enlarged; their noise is that of the draws. Where even gaps as large as ours would hardly give a norm so
    small, the interval ends at our norm, and the other side has the rest of the 5 %.
    """
    gaps, samples = np.asarray(gaps), np.asarray(samples)
    value = float(norm(gaps))
    if len(samples) == 0:
        return Estimate(value, math.nan, math.nan)
    noise = samples - gaps
    doubt = np.square(noise).mean(0) / np.maximum(np.square(gaps), NO_GAP)

    def true_gaps(shrunk: float) -> Array:
        return gaps / (1 + shrunk * doubt) if shrunk > 0 else gaps * (1 - shrunk)

    def chance(shrunk: float) -> float:
        """Of a norm as small as ours, which rises as the true gaps shrink."""
        return float((norm(true_gaps(shrunk) + noise) <= value).mean())

    def end(level: float) -> float:
        """The norm of the true gaps at which the chance reaches a level."""
        low, high = -math.log(ENLARGED), math.log(SHRUNK)  # by factors: -x enlarges, x shrinks
        if chance(math.expm1(high)) <= level:
            return 0.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if chance(math.copysign(math.expm1(abs(middle)), middle)) <= level else (low, middle)
        return float(norm(true_gaps(math.copysign(math.expm1(abs(low)), low))))

    above = min(0.025, chance(0.0))
    return Estimate(value, min(end(0.95 + above), value), max(end(above), value))


def share_estimate(share: float, samples: ArrayLike, images: int) -> Estimate:
    """A share of images; with Wilson's interval where all have it or none has, since every draw is the same then."""
    samples = np.asarray(samples)
    if share not in (0.0, 1.0) or len(samples) == 0:
        return estimate(share, samples)
    ends = wilson(round(share * images), images)
    return Estimate(share, ends["low"], ends["high"])


def calibrated_ece(confidences: ArrayLike, membership: ArrayLike, seed: int, draws: int = DRAWS) -> Array:
    """ECE of a perfectly calibrated model with these confidences: each prediction is right with its own probability.

    `membership` is images x bins (0 or 1). ECE is above 0 even then, since it sums absolute values of noise
    (consistency resampling: Broecker and Smith 2007).
    """
    confidences, matrix = np.asarray(confidences, dtype=np.float64), sparse.csr_array(np.asarray(membership).T)
    random, rows = np.random.default_rng(derive(seed, "calibrated")), [np.zeros(0)]
    expected = matrix @ confidences[:, None]
    for first, last in draw_spans(len(confidences), draws):
        right = random.random((len(confidences), last - first), dtype=np.float32) < confidences[:, None]
        rows.append(np.abs(expected - matrix @ right.astype(np.float64)).sum(0) / len(confidences))
    return np.concatenate(rows)
