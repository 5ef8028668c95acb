"""Pearson's correlation, which several of the papers' tables and figures report."""

from __future__ import annotations

import math

from torch import Tensor


def pearson(first: Tensor, second: Tensor) -> float:
    """Pearson's r of two lists of numbers, over the pairs that are both finite; NaN where one of them does not vary."""
    both = first.isfinite() & second.isfinite()
    x, y = first[both].double(), second[both].double()
    if len(x) < 2 or bool(x.min() == x.max()) or bool(y.min() == y.max()):
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / (x.norm() * y.norm()))
