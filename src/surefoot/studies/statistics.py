"""Mean and deviation over seeds, and differences paired over seeds with a t interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

LEVEL = 0.95
Values = Mapping[int, float]  # seed to value


@dataclass(frozen=True)
class Spread:
    """The mean over seeds and the sample deviation (NaN for a single seed)."""

    mean: float
    deviation: float
    count: int


@dataclass(frozen=True)
class Difference:
    """The mean difference over seeds that both have, and its 95 % t interval (infinite for a single seed)."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def within_noise(self) -> bool | None:
        """Whether zero lies in the interval; None if one seed cannot say."""
        return None if self.count < 2 else self.low <= 0 <= self.high


def spread(values: Sequence[float]) -> Spread:
    return Spread(fmean(values), stdev(values) if len(values) > 1 else math.nan, len(values))


def paired_difference(values: Values, baseline: Values) -> Difference | None:
    """values - baseline, seed by seed: the seed decides initial weights and order, so much of the noise is common."""
    seeds = sorted(values.keys() & baseline.keys())
    if not seeds:
        return None
    differences = [values[seed] - baseline[seed] for seed in seeds]
    mean, count = fmean(differences), len(differences)
    if count == 1:
        return Difference(mean, -math.inf, math.inf, 1)
    half = t_quantile((1 + LEVEL) / 2, count - 1) * stdev(differences) / math.sqrt(count)
    return Difference(mean, mean - half, mean + half, count)


def t_quantile(share: float, freedom: int) -> float:
    """The quantile of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))
