"""Classes in feature space: their centres, how wide and how far apart they are, how near to one simplex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..geometry._margins import boundary_ratio, class_shapes, hyperplane_distances
from ..geometry.centres import KINDS, SCHEDULES, centre_correlations, centre_stability, neural_collapse
from ..geometry.heads import mean_and_deviation
from ..plain import plain
from ..types import Batch
from .base import Measurement, Summary, Table
from .space import OfFeatures, chunk_features, space_head
from .summaries import CLASSES, means, rounded

if TYPE_CHECKING:
    from .context import Context

# The centre of a class in feature space: which kind tells the confidence, and whether it depends on how it is sought.


SHORT = dict(zip(KINDS, ("means", "weights", "minimum_loss"), strict=True))


class Centres(OfFeatures):
    """Pearson r of confidence and cosine to class means, weight vectors and minimum-loss points.

    representation-space Table 1.
    """

    def run(self, context: Context) -> Any:
        outputs, labels = context.outputs(self.max_images)
        correlations = centre_correlations(space_head(context), outputs.features, labels)
        values = dict(zip(correlations.kinds, correlations.values.tolist(), strict=True))
        row = {f"pearson.{SHORT[kind]}": value for kind, value in values.items()}
        return {"values": {"centre_correlations": values}, "figures": {"centre_correlations": plain(correlations)}, "row": row}


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
        stability = centre_stability(space_head(context), outputs.features, *searches)
        settings = zip(stability.schedules, stability.learning_rates, stability.steps, stability.values.tolist(), strict=True)
        row = {f"pearson.{schedule} rate {rate:g} steps {count}": value for schedule, rate, count, value in settings}
        ends = {"least_correlation": stability.values.min(), "largest_correlation": stability.values.max()}
        ends |= {"least_cosine": stability.least_cosine.min()}
        values = {"centre_stability": {name: float(value) for name, value in ends.items()}}
        return {"values": values, "figures": {"centre_stability": plain(stability)}, "row": row}


# How wide and how far apart the classes are in feature space, and how near to one simplex.


class ClassShapes(Measurement):
    """Dispersion and margin of classes, and distances to their hyperplanes (discriminative-noise Def. 3.1, 5.1, Eq. 10)."""

    part = "geometry"
    adds = ("hyperplane_distance",)

    def __init__(self, max_images: int | None = None) -> None:
        self.max_images = max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        features = chunk_features(context, batch).features
        return {"hyperplane_distance": hyperplane_distances(space_head(context), features, batch.labels)}

    def outputs_of(self, context: Context) -> Tensor:
        return context.rows(self.max_images)

    def run(self, context: Context) -> Any:
        outputs, labels = context.outputs(self.max_images)
        shapes = class_shapes(space_head(context), outputs.features, labels)
        values = {
            "class_dispersion": mean_and_deviation(shapes.dispersions)[0],
            "class_margin": mean_and_deviation(shapes.margins)[0],
            "signed_class_margin": mean_and_deviation(shapes.signed_margins)[0],
            "boundary_ratio": boundary_ratio(space_head(context), outputs.features, labels),
        }
        shown = shapes.signed_margins.nan_to_num(torch.inf).argsort(stable=True)[:CLASSES].sort().values.cpu()
        figure: dict[str, Any] = {name: rounded(each.cpu()[shown]) for name, each in vars(shapes).items() if name != "counts"}
        names = [context.data.class_names[number] for number in shown.tolist()]
        return {"values": values, "figure": {**figure, "counts": shapes.counts.cpu()[shown].tolist(), "names": names}}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        values = result["values"] | means(context, rows, {"hyperplane_distance": "hyperplane_distance"})
        figures = {"class_shapes": result["figure"], "hyperplanes": rounded(rows["hyperplane_distance"])}
        return Summary(values, figures)


class Collapse(OfFeatures):
    """Neural collapse: how near features and weights are to one simplex (Papyan, Han and Donoho 2020)."""

    def run(self, context: Context) -> Any:
        outputs, labels = context.outputs(self.max_images)
        collapse = neural_collapse(space_head(context), outputs.features, labels)
        values = {name: value for name, value in vars(collapse).items() if name != "classes"}
        return {"values": {"neural_collapse": values}, "figures": {"neural_collapse": plain(collapse)}}
