"""What may be asked of certificates; known without torch."""

from __future__ import annotations

import math

from ..errors import require


def check_certifying(std: float, n0: int, n: int, alpha: float) -> None:
    """That noise of this size can be drawn so often, for certificates that are wrong so seldom."""
    require(0 < std < math.inf, "std", "positive", std)
    require(n0 >= 1, "n0", "at least 1", n0)
    require(n >= 1, "n", "at least 1", n)
    require(0 < alpha < 1, "alpha", "between 0 and 1", alpha)
