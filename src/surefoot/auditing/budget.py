"""An audit within a time: each measurement takes fewer images where all of them would take too long.

What it costs is estimated from the time of one picture through the model, which the plan keeps, so that an interrupted audit
goes on with the same images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from ..data.dataset import Split
from ..data.subsets import chosen_rows
from ..measurements.base import CLEAN, Beside, Change, Measurement
from ..measurements.context import Context
from ..progress import duration
from .store import share_of_work

FEWEST = 32  # images below which a number would say nothing
FEWEST_CLEAN = 100  # of the images as they are
CLEAN_PART = 0.25  # of the time, for the images as they are
MISSED = 1.25  # times the budget from which it is said that it cannot be kept
WRITING = 0.05  # of the time, for intervals and the page
CHANGING = 1.3e-8  # seconds to corrupt a pixel value: 1.9 ms for a picture of 224 px (benchmarks/corruptions.py)


@dataclass(frozen=True)
class Budget:
    """The seconds that an audit may take, of which some were spent on reading and on the first look."""

    whole: float
    spent: float = 0.0

    @property
    def left(self) -> float:
        """For measuring: intervals and the page come after it."""
        return max(self.whole * (1 - WRITING) - self.spent, 0.0)


def cost_of(measurement: Measurement, context: Context, seconds: float) -> float:
    """About how many seconds a measurement takes for each of its images, if one pass through the model takes so many."""
    conditions = [each for each in measurement.conditions(context) if not isinstance(each, Beside)]
    values = context.data.channels * math.prod(context.data.image_size)
    changed = sum(CHANGING * values for condition in conditions if isinstance(condition, Change))
    right = float(context.clean.correct.float().mean()) if any(each.spares_wrong for each in conditions) else 1.0
    under = sum(condition.passes * (right if condition.spares_wrong else 1) for condition in conditions)
    looked = 1 if measurement.adds or measurement.sees else 0
    return (measurement.passes * (under + looked) + measurement.passes_of_run(context)) * seconds + changed


def expected(measurements: Mapping[str, Measurement], context: Context, seconds: float) -> dict[str, float]:
    """About how many seconds each measurement takes, of which `clean` is the first pass, and further test sets with it."""
    further = [each for one in measurements.values() for each in one.conditions(context) if isinstance(each, Beside)]
    first = (len(context.images) + sum(len(each.split) for each in further)) * seconds
    costs = {label: len(each.rows(context)) * cost_of(each, context, seconds) for label, each in measurements.items()}
    return {CLEAN: first, **costs}


def fit_to_time(measurements: Mapping[str, Measurement], context: Context, seconds: float, budget: Budget) -> list[str]:
    """Fewer images for each measurement, all by the same share, so that the audit keeps to the budget; what to say."""
    images = len(context.images)
    costs = expected(measurements, context, seconds)
    first = costs.pop(CLEAN)
    left, wanted = max(budget.left * share_of_work()[1] - first, 0.0), sum(costs.values())
    if wanted <= left or context.copies is not None:  # published copies are of all images
        return []
    share, fewer = left / wanted, {}
    sizes = {label: min(each.max_images or images, images) for label, each in measurements.items() if not each.scattered}
    for label, size in sizes.items():
        few = max(min(size, FEWEST), round(size * share))
        if few < size and costs[label] > 0:
            fewer[label] = few
            measurements[label].take(few)
    shown = [f"{label} {few} of {sizes[label]}" for label, few in fewer.items() if label in ("corruptions", "attacks", "noise")]
    saved = sum(costs[label] * (1 - few / sizes[label]) for label, few in fewer.items())
    whole, takes = (budget.spent + (first + rest) / share_of_work()[1] for rest in (wanted, wanted - saved))
    line = f"Fewer images, so that it takes {promised(budget, takes, FEWEST)} and not {duration(whole)}; intervals are wider"
    return [f"{line}: {', '.join(shown)} images." if shown else f"{line}."]


def promised(budget: Budget, takes: float, fewest: int) -> str:
    """About how long it takes, and why that is longer than was given, where it is."""
    if takes <= MISSED * budget.whole:
        return f"about {duration(budget.whole)}"
    return f"about {duration(takes)} ({duration(budget.whole)} are too few: no number is of fewer than {fewest} images)"


def affordable(images: Split, seconds: float, budget: Budget, seed: int) -> tuple[Tensor | None, list[str]]:
    """The rows of the audited images where all of them, as they are, would take more than their part of the time."""
    if share_of_work()[1] > 1:  # several processes would each measure another speed
        return None, []
    most = max(FEWEST_CLEAN, int(budget.left * CLEAN_PART / max(seconds, 1e-9)))
    if len(images) <= most:
        return None, []
    takes = promised(budget, budget.spent + most * seconds, FEWEST_CLEAN)
    line = f"{most} of {len(images)} images, so that it takes {takes}"
    return chosen_rows(images, most, seed), [f"{line}: --time sets it, and intervals are wider."]
