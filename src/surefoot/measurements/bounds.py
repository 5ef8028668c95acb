"""What theorems say of a model: certified accuracy, a term to compare by, and a bound that is vacuous."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..calibration.bootstrap import mean_estimate
from ..data.dataset import whole
from ..data.subsets import choose
from ..geometry import bounds
from ..geometry._margins import margins
from ..geometry.certificates import certify
from ..geometry.complexity import margin_term
from ..geometry.features import observed_features
from ..plain import plain
from ..types import Batch, Features
from .base import Measurement, Summary, Table, Whole
from .summaries import mean_of, rounded

if TYPE_CHECKING:
    from .context import Context

# Certified accuracy of the smoothed classifier (Cohen, Rosenfeld and Kolter 2019).


class Certificates(Measurement):
    """Certified accuracy at some radii, by randomised smoothing with noise of deviation `std`; `draws` bound each radius."""

    part = "geometry"
    adds = ("certified_radius", "certified_class")
    passes = 1100

    def __init__(
        self,
        std: float = 0.25,
        radii: Sequence[float] = (0.0, 0.25, 0.5, 0.75),
        draws: int = 1000,
        max_images: int | None = 100,
    ) -> None:
        self.std, self.radii, self.draws, self.max_images = std, radii, draws, max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        run: dict[str, Any] = {"seed": context.seed, "indices": batch.indices, "batch_size": context.batch_size}
        certificates = certify(context.model, batch.images, batch.labels, self.std, n=self.draws, **run)
        return {"certified_radius": certificates.values, "certified_class": certificates.predictions}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        radii, classes = rows["certified_radius"], rows["certified_class"].astype(int)
        right = classes == rows["label"]
        shares = {f"{radius:g}": mean_of(context, rows, right & (radii >= radius)) for radius in self.radii}
        values = {"certified_accuracy": shares, "certified_noise": self.std, "certified_images": len(right)}
        figure = {"values": rounded(radii), "predictions": classes.tolist(), "labels": rows["label"].tolist()}
        return Summary(values, {"certificates": {**figure, "std": self.std}})


# What theorems say of a model from its training images: a term to compare by, and a bound that is vacuous.


LAYERS = 200  # in a figure at most
NAMED = 5  # layers that a note names


def training_images(context: Context, max_images: int | None) -> Batch:
    """Some of the train split: both theorems are about images that were trained on."""

    def read() -> Batch:
        return whole(choose(context.data.train, max_images, context.seed), context.batch_size, context.device)

    return context.once(("train", max_images), read)


class Complexity(Whole):
    """Spectral complexity R_f and the margin term (macs Def. 4.1, Thm 4.2), as logarithms.

    `margin` is gamma, `iterations` are of power iteration at most, for each layer.
    """

    part = "geometry"

    def __init__(self, margin: float = 1.0, iterations: int = 500, max_images: int | None = 500) -> None:
        self.margin, self.iterations, self.max_images = margin, iterations, max_images

    def run(self, context: Context) -> Any:
        few = training_images(context, self.max_images)
        model, size = context.linear, context.batch_size
        term = margin_term(model, few.images, few.labels, self.margin, steps=self.iterations, batch_size=size)
        below = (margins(model, few.images, few.labels, batch_size=size) < self.margin).cpu().numpy().astype(np.float64)
        inside = term.complexity
        values = {
            "log_spectral_complexity": inside.log_complexity,
            "log_margin_term": term.log_term,
            "share_below_margin": mean_estimate(below, context.seed, context.intervals, ids=few.indices.cpu().numpy()),
        }
        more = f" and {len(inside.left_out) - NAMED} more" if len(inside.left_out) > NAMED else ""
        left_out = f" Here: {', '.join(inside.left_out[:NAMED])}{more}." if inside.left_out else ""
        said = f"Of {term.count} images of the train split, n in the term; it means images that this model was trained on."
        figure = {
            "names": list(inside.names[:LAYERS]),
            "spectral": rounded(inside.spectral[:LAYERS]),
            "frobenius": rounded(inside.frobenius[:LAYERS]),
            "log_complexity": inside.log_complexity,
            "log_term": term.log_term,
        }
        notes = [f"spectral complexity: {inside.note}{left_out}", f"margin term: {term.note} {said}"]
        return {"values": values, "figures": {"complexity": plain(figure)}, "notes": notes}


class MappingBound(Whole):
    """The right side of discriminative-noise Thm 6.2 for every class, and for how many it says nothing."""

    part = "geometry"

    def __init__(self, max_images: int | None = 500) -> None:
        self.max_images = max_images

    def run(self, context: Context) -> Any:
        few = training_images(context, self.max_images)
        features = observed_features(context.linear, few.images, context.batch_size).features
        by_class = {number: favourable_bound(features[few.labels == number]) for number in few.labels.unique().tolist()}
        best = min(by_class, key=lambda number: by_class[number].bound)
        empty = sum(each.verdict == "vacuous" for each in by_class.values())
        values = {"mapping_bound": by_class[best].bound, "vacuous_mapping_bounds": empty / len(by_class)}
        least, name = by_class[best], context.data.class_names[best]
        note = (
            f"mapping bound: vacuous for {empty} of {len(by_class)} classes. The least, {least.bound:.3g} for class {name},"
            f" is {least.verdict}: {least.note}. Radius and constants are taken from the images, which the theorem"
            " does not allow but which favours it."
        )
        return {"values": values, "figures": {"mapping": {**plain(least), "class": name}}, "notes": [note]}


def favourable_bound(features: Features) -> bounds.MappingBound:
    """Thm 6.2 for the features of a class around their mean, in the ball that makes its empirical part 0.

    r^2 is twice the largest squared distance and rho half of r^2, so that every image is inside by rho.
    """
    features = features.double()
    centre = features.mean(0)
    furthest = float(torch.linalg.vector_norm(features - centre, dim=1).max())
    radius = math.sqrt(2) * furthest or 1.0  # a class of one image has no extent
    return bounds.mapping_bound(features, centre, radius, radius**2 / 2)
