"""Intervals by drawing images again, and the band that a perfectly calibrated model would show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ..errors import require
from ..intervals import wilson
from ..seeds import generator
from ..types import Estimate

DRAWS = 1000
CHUNK = 2**22  # draws x images held at once
ENLARGED, SHRUNK, STEPS = 10.0, 1e6, 24  # how far an interval is sought, and how finely


def _chunks(images: int, draws: int) -> Iterator[int]:
    size = max(1, CHUNK // max(images, 1))
    for start in range(0, draws, size):
        yield min(size, draws - start)


def resamples(images: int, seed: int, draws: int = DRAWS) -> Iterator[Tensor]:
    """How often each image is drawn, some draws at a time: draws x images, float64.

    The numbers depend on `images` and `seed` alone, so that two models on the same images are compared draw by draw.
    """
    require(draws >= 0, "intervals", "a number of draws, at least 0", draws)
    random = generator(seed, "bootstrap")
    for size in _chunks(images, draws):
        picks = torch.randint(images, (size, images), generator=random)
        weights = torch.zeros(size, images, dtype=torch.float64)
        yield weights.scatter_add_(1, picks, weights.new_ones(()).expand_as(picks))


def resampled_sums(values: Tensor, seed: int, draws: int = DRAWS) -> Tensor:
    """Column sums of `values` (images x columns) over images drawn with replacement: draws x columns."""
    return torch.cat([weights @ values for weights in resamples(len(values), seed, draws)])


def mean_estimate(values: Tensor, seed: int, draws: int = DRAWS) -> Estimate:
    """The mean of one value per image, with its percentile interval."""
    values = values.double().view(-1, 1)
    return estimate(float(values.mean()), resampled_sums(values, seed, draws)[:, 0] / len(values))


def estimate(value: float, samples: Tensor) -> Estimate:
    """A value with the 2.5 and 97.5 percentiles of its bootstrap samples, which contain it; NaN without samples."""
    if len(samples) == 0:
        return Estimate(value, math.nan, math.nan)
    low, high = samples.nanquantile(torch.tensor([0.025, 0.975], dtype=samples.dtype)).tolist()
    return Estimate(value, min(low, value), max(high, value))


def shifted_estimate(value: float, samples: Tensor) -> Estimate:
    """The same for a score that noise makes larger: the samples without what drawing adds to them and to the value itself."""
    return estimate(value, (samples - 2 * (samples.nanmean() - value)).clamp_min(0))


Norm = Callable[[Tensor], Tensor]  # of the last dimension


def norm_estimate(gaps: Tensor, samples: Tensor, norm: Norm) -> Estimate:
    """A norm of gaps, such as ECE, with the 95 % interval of the norm of the true gaps; `samples` is draws x gaps.

    A norm of noisy gaps is too large, and of gaps that are drawn again larger still: their percentiles lie above the truth. So
    a test is inverted: t is in the interval unless a norm as small as ours, or as large, has a chance below 2.5 % where the
    true gaps have norm t. Such gaps are ours times g^2 / (g^2 + x s^2), s their deviation, so that doubtful ones vanish
    first, or ours enlarged; their noise is that of the draws. Where even gaps as large as ours would hardly give a norm so
    small, the interval ends at our norm, and the other side has the rest of the 5 %.
    """
    value = float(norm(gaps))
    if len(samples) == 0:
        return Estimate(value, math.nan, math.nan)
    noise = samples - gaps
    squares = gaps.square()
    doubt = noise.square().mean(0) / squares.clamp_min(torch.finfo(squares.dtype).tiny)

    def true_gaps(shrunk: float) -> Tensor:
        return gaps / (1 + shrunk * doubt) if shrunk > 0 else gaps * (1 - shrunk)

    def chance(shrunk: float) -> float:
        """Of a norm as small as ours, which rises as the true gaps shrink."""
        return float((norm(true_gaps(shrunk) + noise) <= value).double().mean())

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


def share_estimate(share: float, samples: Tensor, images: int) -> Estimate:
    """A share of images; with Wilson's interval where all have it or none has, since every draw is the same then."""
    if share not in (0.0, 1.0) or len(samples) == 0:
        return estimate(share, samples)
    ends = wilson(round(share * images), images)
    return Estimate(share, ends["low"], ends["high"])


def calibrated_ece(confidences: Tensor, membership: Tensor, seed: int, draws: int = DRAWS) -> Tensor:
    """ECE of a perfectly calibrated model with these confidences: each answer is right with its own probability.

    `membership` is images x bins (0 or 1). ECE is above 0 even then, since it sums absolute values of noise
    (consistency resampling: Broecker and Smith 2007).
    """
    random, rows = generator(seed, "calibrated"), [torch.zeros(0, dtype=torch.float64)]
    for size in _chunks(len(confidences), draws):
        right = torch.rand(size, len(confidences), generator=random, dtype=torch.float64) < confidences
        gaps = (confidences - right.double()) @ membership
        rows.append(gaps.abs().sum(1) / len(confidences))
    return torch.cat(rows)
