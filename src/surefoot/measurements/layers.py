"""What layers make of the classes, clean and noisy: blocks in two dimensions, and how separate classes are at each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import SurefootError
from ..geometry.bounds import class_separation
from ..geometry.features import observed_features
from ..geometry.layers import block_features, layer_projection, main_blocks, pooled, pooled_square
from ..types import Features, Labels
from .base import Whole
from .summaries import evenly, rounded

if TYPE_CHECKING:
    from .context import Context

CLASSES = 10  # as many as one tells apart by colour


class Layers(Whole):
    """t-SNE of some blocks (discriminative-noise Fig. 1, 12, 13), and Thm 6.3's divergences at each of them.

    `images` of the classes that have most among `max_images`.
    """

    part = "geometry"

    def __init__(self, blocks: int = 4, images: int = 300, max_images: int | None = 2000) -> None:
        self.blocks, self.images, self.max_images = blocks, images, max_images

    def run(self, context: Context) -> Any:
        model, few = context.linear, context.images_at(self.pictures_of(context))
        images, labels = few.images, few.labels.cpu()
        pool = pooled_square if images.shape[-1] == images.shape[-2] else pooled
        run: dict[str, Any] = {"batch_size": context.batch_size}
        blocks = main_blocks(model, images, self.blocks)
        drawn: dict[str, Any] = {"seed": context.seed, "indices": few.indices, "pool": pool}
        points = layer_projection(model, images, labels, blocks, **drawn, **run)
        last = observed_features(model, images, **run).features.cpu()
        radius = largest_radius(last, labels)
        apart = {
            name: class_separation(features.cpu(), last, labels, radius, seed=context.seed)
            for name, features in block_features(model, images, blocks, pool, **run).items()
        }
        one = next(iter(apart.values()))
        values = {
            "class_separation": {name: float(layer.values.mean()) for name, layer in apart.items()},
            "class_separation_bound": one.bound,
        }
        shown = {kind: [[rounded(point) for point in block] for block in getattr(points, kind)] for kind in ("clean", "noisy")}
        names, kinds = context.data.class_names, labels.unique().tolist()
        figure: dict[str, Any] = {"blocks": list(points.blocks), "level": points.level, **shown}
        figure |= {"labels": [kinds.index(label) for label in labels.tolist()], "names": [names[label] for label in kinds]}
        separation: dict[str, Any] = {"blocks": list(apart), "values": [rounded(layer.values) for layer in apart.values()]}
        separation |= {"pairs": [[names[a], names[b]] for a, b in one.pairs], "bound": one.bound, "tau": one.tau}
        figures = {"layers": figure, "separation": separation}
        return {"values": values, "figures": figures, "notes": [f"class separation: {one.note}"]}

    def pictures_of(self, context: Context) -> Tensor:
        """The images to look at."""
        rows = context.rows(self.max_images)
        own = of_some_classes(context.clean.labels[rows])
        return rows[own[evenly(len(own), self.images)]]


def of_some_classes(labels: Labels) -> Tensor:
    """The rows of the classes that have most images; a class of a single image says nothing of separation."""
    counts = labels.bincount()
    most = counts.argsort(descending=True, stable=True)[:CLASSES]
    rows = torch.isin(labels, most[counts[most] > 1]).nonzero().flatten()
    if len(rows) == 0:
        raise SurefootError("needs at least two images of a class, and there is one of each.")
    return rows


def largest_radius(features: Features, labels: Labels) -> float:
    """Of balls around the class means that are still disjoint: the one that favours the bound of Thm 6.3."""
    centres = torch.stack([features[labels == number].mean(0) for number in labels.unique()])
    return 0.4999 * float(torch.pdist(centres).min()) if len(centres) > 1 else 1.0
