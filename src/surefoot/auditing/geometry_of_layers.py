"""What layers make of the classes, clean and noisy, in an audit: blocks in two dimensions, and how separate classes are."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import SurefootError
from ..geometry.bounds import class_separation
from ..geometry.features import observed_features
from ..geometry.layers import block_features, layer_projection, main_blocks, pooled, pooled_square
from ..types import Batch, Features, Labels
from .geometry_of_features import rounded, some, space_of
from .records import Record
from .setting import Setting

IMAGES = 300
CLASSES = 10  # as many as one tells apart by colour
BLOCKS = 4
PROJECTED = 3.0  # seconds for t-SNE and the separation of classes, for each block


def layers_record(setting: Setting, batch: Batch) -> Record:
    """t-SNE of some blocks (discriminative-noise Fig. 1, 12, 13), and Thm 6.3's divergences at each of them."""
    model, few = space_of(setting.model), some(of_some_classes(batch), IMAGES)
    images, labels = few.images, few.labels.cpu()
    pool = pooled_square if images.shape[-1] == images.shape[-2] else pooled
    run: dict[str, Any] = {"batch_size": setting.batch_size}
    blocks = main_blocks(model, images, BLOCKS)
    places = layer_projection(model, images, labels, blocks, seed=setting.seed, pool=pool, **run)
    last = observed_features(model, images, **run).features.cpu()
    radius = largest_radius(last, labels)
    apart = {
        name: class_separation(features.cpu(), last, labels, radius, seed=setting.seed)
        for name, features in block_features(model, images, blocks, pool, **run).items()
    }
    one = next(iter(apart.values()))
    measured = {
        "class_separation": {name: float(found.values.mean()) for name, found in apart.items()},
        "class_separation_bound": one.bound,
    }
    shown = {kind: [[rounded(place) for place in block] for block in getattr(places, kind)] for kind in ("clean", "noisy")}
    names = [setting.data.class_names[label] for label in range(setting.data.num_classes)]
    kinds = labels.unique().tolist()
    figure = {"blocks": list(places.blocks), "level": places.level, **shown}
    figure |= {"labels": [kinds.index(label) for label in labels.tolist()], "names": [names[label] for label in kinds]}
    separation = {"blocks": list(apart), "values": [rounded(found.values) for found in apart.values()]}
    separation |= {"pairs": [[names[a], names[b]] for a, b in one.pairs], "bound": one.bound, "tau": one.tau}
    figures = {"layers": figure, "separation": separation}
    return Record({"measured": measured, "figures": figures, "notes": [f"class separation: {one.note}"]})


def of_some_classes(batch: Batch) -> Batch:
    """The images of the classes that have most; a class of a single image says nothing of separation."""
    counts = batch.labels.bincount()
    most = counts.argsort(descending=True, stable=True)[:CLASSES]
    where = torch.isin(batch.labels, most[counts[most] > 1]).nonzero().flatten()
    if len(where) == 0:
        raise SurefootError("needs at least two images of a class, and there is one of each.")
    return Batch(batch.images[where], batch.labels[where], batch.indices[where.to(batch.indices.device)])


def largest_radius(features: Features, labels: Labels) -> float:
    """Of balls around the class means that are still disjoint: the one that favours the bound of Thm 6.3."""
    means = torch.stack([features[labels == number].mean(0) for number in labels.unique()])
    return 0.4999 * float(torch.pdist(means).min()) if len(means) > 1 else 1.0
