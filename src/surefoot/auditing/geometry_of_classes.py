"""How wide, how far apart and how well centred the classes are in feature space, in an audit."""

from __future__ import annotations

from typing import Any

import torch

from ..calibration.bootstrap import mean_estimate
from ..geometry._margins import class_shapes, hyperplane_distances
from ..geometry.centres import centre_stability
from ..geometry.features import observed_features
from ..geometry.statistics import mean_and_deviation
from ..models.observing import head_of
from ..plain import plain
from ..types import Batch
from .geometry_of_features import CLASSES, rounded, space_of
from .records import Record
from .setting import Setting

STEPS = 2300  # of gradient descent in feature space, over the settings of representation-space Tab. 9


def class_shapes_record(setting: Setting, batch: Batch) -> Record:
    """Dispersion and margin of classes, and distances to their hyperplanes (discriminative-noise Def. 3.1, 5.1, Eq. 10)."""
    model = space_of(setting.model)
    features = observed_features(model, batch.images, setting.batch_size).features
    head = head_of(model, batch.images)
    found = class_shapes(head, features, batch.labels)
    distances = hyperplane_distances(head, features, batch.labels).cpu()
    measured: dict[str, Any] = {
        "class_dispersion": mean_and_deviation(found.dispersions)[0],
        "class_margin": mean_and_deviation(found.margins)[0],
        "signed_class_margin": mean_and_deviation(found.signed_margins)[0],
        "hyperplane_distance": mean_estimate(distances, setting.seed),
    }
    shown = found.signed_margins.nan_to_num(torch.inf).argsort(stable=True)[:CLASSES].sort().values.cpu()
    rows = {name: rounded(values.cpu()[shown]) for name, values in vars(found).items() if name != "counts"}
    rows |= {"counts": found.counts.cpu()[shown].tolist(), "names": [setting.data.class_names[k] for k in shown.tolist()]}
    return Record({"measured": measured, "figures": {"class_shapes": rows, "hyperplanes": rounded(distances)}})


def centre_stability_record(setting: Setting, batch: Batch) -> Record:
    """Whether the centres of classes depend on how they are sought (representation-space Tab. 9)."""
    model = space_of(setting.model)
    features = observed_features(model, batch.images, setting.batch_size).features
    found = centre_stability(head_of(model, batch.images), features)
    ends = {"least_correlation": found.values.min(), "largest_correlation": found.values.max()}
    ends |= {"least_cosine": found.least_cosine.min()}
    stable = {name: float(value) for name, value in ends.items()}
    return Record({"measured": {"centre_stability": stable}, "figures": {"centre_stability": plain(found)}})


def centre_seconds(classes: int) -> float:
    """Estimated seconds for all those steps: a product of classes x classes matrices each."""
    return STEPS * (3e-5 + 1e-10 * classes**3)
