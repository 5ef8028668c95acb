"""A number with its interval, and the interval of a share, in plain Python, since both the scores and the page show them."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

NORMAL_95 = 1.959964  # the 97.5 percentile of the normal distribution


class Estimate(float):
    """A number with its 95 % interval; it is a float wherever one is wanted."""

    low: float
    high: float

    def __new__(cls, value: float, low: float, high: float) -> Estimate:
        self = super().__new__(cls, value)
        self.low, self.high = float(low), float(high)
        return self

    def __repr__(self) -> str:
        return f"{float(self):.4g} [{self.low:.4g}, {self.high:.4g}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Estimate, (float(self), self.low, self.high))


def wilson(correct: int, count: int, several: int = 1) -> dict[str, float]:
    """Accuracy with its 95 % interval for a binomial share (Wilson 1927), which is sound for few images too.

    With `several` shares looked at, all their intervals hold at once in 95 % of cases (Bonferroni's correction).
    """
    z, share = NORMAL_95 if several == 1 else NormalDist().inv_cdf(1 - 0.025 / several), correct / count
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5
    low, high = max(min(centre - half, share), 0.0), min(max(centre + half, share), 1.0)  # rounding leaves neither side
    return {"accuracy": share, "low": low, "high": high}
