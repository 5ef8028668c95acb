"""The centre of a class in feature space: which kind tells the confidence, and whether it depends on how it is sought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..geometry.centres import KINDS, SCHEDULES, centre_correlations, centre_stability
from ..plain import plain
from .space import OfFeatures, space_head

if TYPE_CHECKING:
    from .context import Context

SHORT = dict(zip(KINDS, ("means", "weights", "minimum_loss"), strict=True))


class Centres(OfFeatures):
    """Pearson r of confidence and cosine to class means, weight vectors and minimum-loss points.

    representation-space Table 1.
    """

    def run(self, context: Context) -> Any:
        outputs, labels = context.outputs(self.max_images)
        found = centre_correlations(space_head(context), outputs.features, labels)
        values = dict(zip(found.kinds, found.values.tolist(), strict=True))
        row = {f"pearson.{SHORT[kind]}": value for kind, value in values.items()}
        return {"values": {"centre_correlations": values}, "figures": {"centre_correlations": plain(found)}, "row": row}


class CentreSearches(OfFeatures):
    """Pearson r of confidence and cosine to minimum-loss points by every setting of their search.

    representation-space Table 9.
    """

    def __init__(
        self,
        learning_rates: Sequence[float] = (0.001, 0.01, 0.1),
        steps: Sequence[int] = (50, 100, 200),
        schedules: Sequence[str] = SCHEDULES,
        max_images: int | None = None,
    ) -> None:
        super().__init__(max_images)
        self.learning_rates, self.steps, self.schedules = learning_rates, steps, schedules

    def run(self, context: Context) -> Any:
        outputs, _ = context.outputs(self.max_images)
        searches = self.learning_rates, self.steps, self.schedules
        found = centre_stability(space_head(context), outputs.features, *searches)
        settings = zip(found.schedules, found.learning_rates, found.steps, found.values.tolist(), strict=True)
        row = {f"pearson.{schedule} rate {rate:g} steps {count}": value for schedule, rate, count, value in settings}
        ends = {"least_correlation": found.values.min(), "largest_correlation": found.values.max()}
        ends |= {"least_cosine": found.least_cosine.min()}
        values = {"centre_stability": {name: float(value) for name, value in ends.items()}}
        return {"values": values, "figures": {"centre_stability": plain(found)}, "row": row}
