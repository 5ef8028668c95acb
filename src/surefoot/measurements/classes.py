"""How wide and how far apart the classes are in feature space, and how near to one simplex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..geometry._margins import class_shapes, hyperplane_distances
from ..geometry.collapse import neural_collapse
from ..geometry.statistics import mean_and_deviation
from ..plain import plain
from ..types import Batch
from .base import Measurement, Summary, Table
from .space import OfFeatures, chunk_features, space_head
from .summaries import CLASSES, means, rounded

if TYPE_CHECKING:
    from .context import Context


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
        found = class_shapes(space_head(context), outputs.features, labels)
        values = {
            "class_dispersion": mean_and_deviation(found.dispersions)[0],
            "class_margin": mean_and_deviation(found.margins)[0],
            "signed_class_margin": mean_and_deviation(found.signed_margins)[0],
        }
        shown = found.signed_margins.nan_to_num(torch.inf).argsort(stable=True)[:CLASSES].sort().values.cpu()
        figure: dict[str, Any] = {name: rounded(each.cpu()[shown]) for name, each in vars(found).items() if name != "counts"}
        names = [context.data.class_names[number] for number in shown.tolist()]
        return {"values": values, "figure": {**figure, "counts": found.counts.cpu()[shown].tolist(), "names": names}}

    def summarise(self, context: Context, table: Table, found: Any) -> Summary:
        rows = table.clean(self.max_images)
        values = found["values"] | means(context, rows, {"hyperplane_distance": "hyperplane_distance"})
        figures = {"class_shapes": found["figure"], "hyperplanes": rounded(rows["hyperplane_distance"])}
        return Summary(values, figures)


class Collapse(OfFeatures):
    """Neural collapse: how near features and weights are to one simplex (Papyan, Han and Donoho 2020)."""

    def run(self, context: Context) -> Any:
        outputs, labels = context.outputs(self.max_images)
        found = neural_collapse(space_head(context), outputs.features, labels)
        values = {name: value for name, value in vars(found).items() if name != "classes"}
        return {"values": {"neural_collapse": values}, "figures": {"neural_collapse": plain(found)}}
