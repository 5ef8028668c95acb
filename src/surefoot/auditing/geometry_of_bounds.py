"""What theorems say of a model from its training images, in an audit: a term to compare by, and a bound that is vacuous."""

from __future__ import annotations

import math

import torch

from ..calibration.bootstrap import mean_estimate
from ..data.choosing import choose
from ..data.dataset import whole
from ..geometry._margins import margins
from ..geometry.bounds import MappingBound, mapping_bound
from ..geometry.complexity import margin_term
from ..geometry.features import observed_features
from ..plain import plain
from ..types import Batch, Features
from .geometry_of_features import rounded, space_of
from .records import Record
from .setting import Setting

MARGIN = 1.0  # gamma of macs Thm 4.2
ITERATIONS = 500  # of power iteration at most, for each layer on one image
LAYERS = 200  # in a figure at most
NAMED = 5  # layers that a note names


def training_images(setting: Setting) -> Batch:
    """As many of the train split as geometry is measured on: both theorems are about images that were trained on."""
    few = choose(setting.data.train, setting.depth.geometry_images, setting.seed)
    return whole(few, setting.batch_size, setting.device)


def complexity_record(setting: Setting, batch: Batch) -> Record:
    """Spectral complexity R_f and the margin term (macs Def. 4.1, Thm 4.2), as logarithms."""
    model, few = space_of(setting.model), training_images(setting)
    found = margin_term(model, few.images, few.labels, MARGIN, steps=ITERATIONS, batch_size=setting.batch_size)
    below = margins(model, few.images, few.labels, batch_size=setting.batch_size) < MARGIN
    inside = found.complexity
    measured = {
        "log_spectral_complexity": inside.log_complexity,
        "log_margin_term": found.log_term,
        "share_below_margin": mean_estimate(below.double().cpu(), setting.seed),
    }
    more = f" and {len(inside.left_out) - NAMED} more" if len(inside.left_out) > NAMED else ""
    left_out = f" Here: {', '.join(inside.left_out[:NAMED])}{more}." if inside.left_out else ""
    said = f"Of {found.count} images of the train split, n in the term; it means images that this model was trained on."
    rows = {
        "names": list(inside.names[:LAYERS]),
        "spectral": rounded(inside.spectral[:LAYERS]),
        "frobenius": rounded(inside.frobenius[:LAYERS]),
        "log_complexity": inside.log_complexity,
        "log_term": found.log_term,
    }
    notes = [f"spectral complexity: {inside.note}{left_out}", f"margin term: {found.note} {said}"]
    return Record({"measured": measured, "figures": {"complexity": plain(rows)}, "notes": notes})


def mapping_bound_record(setting: Setting, batch: Batch) -> Record:
    """The right side of discriminative-noise Thm 6.2 for every class, and for how many it says nothing."""
    few = training_images(setting)
    features = observed_features(space_of(setting.model), few.images, setting.batch_size).features
    found = {number: favourable_bound(features[few.labels == number]) for number in few.labels.unique().tolist()}
    best = min(found, key=lambda number: found[number].bound)
    empty = sum(each.verdict == "vacuous" for each in found.values())
    measured = {"mapping_bound": found[best].bound, "vacuous_mapping_bounds": empty / len(found)}
    name = setting.data.class_names[best]
    note = (
        f"mapping bound: vacuous for {empty} of {len(found)} classes. The least, {found[best].bound:.3g} for class {name}, is"
        f" {found[best].verdict}: {found[best].note}. Radius and constants are taken from the images, which the theorem does"
        " not allow but which favours it."
    )
    figure = {**plain(found[best]), "class": name}
    return Record({"measured": measured, "figures": {"mapping": figure}, "notes": [note]})


def favourable_bound(features: Features) -> MappingBound:
    """Thm 6.2 for the features of a class around their mean, in the ball that makes its empirical part 0.

    r^2 is twice the largest squared distance and rho half of r^2, so that every image is inside by rho.
    """
    features = features.double()
    centre = features.mean(0)
    furthest = float(torch.linalg.vector_norm(features - centre, dim=1).max())
    radius = math.sqrt(2) * furthest or 1.0  # a class of one image has no extent
    return mapping_bound(features, centre, radius, radius**2 / 2)
