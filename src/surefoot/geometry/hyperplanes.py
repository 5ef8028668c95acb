"""How far features are from the hyperplanes where the head changes its mind (discriminative Eq. 6, 10)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Features, Labels, check_labels
from .batching import slices
from .heads import in_place_of, logits_at, weights_of

__all__ = ["hyperplane_distances", "signed_distances", "weight_distances"]


def weight_distances(head: nn.Linear) -> Tensor:
    """||W_i - W_j|| for all pairs of classes, by differences: the matmul form is too inexact for near rows."""
    weight = weights_of(head)[0]
    return torch.cdist(weight, weight, compute_mode="donot_use_mm_for_euclid_dist")


def signed_distances(head: nn.Linear, features: Features, classes: Labels, between: Tensor) -> Tensor:
    """(z_c - z_i) / ||W_c - W_i|| to the hyperplane of each rival i; infinite for i = c and rivals with the same weights."""
    logits = logits_at(head, features)
    gaps = logits.gather(1, classes.unsqueeze(1)) - logits
    lengths = between[classes]
    distances = torch.where(lengths > 0, gaps / lengths, torch.inf)
    return distances.scatter(1, classes.unsqueeze(1), torch.inf)


def hyperplane_distances(
    head: nn.Linear,
    features: Features,
    labels: Labels | None = None,
    *,
    batch_size: int = 4096,
    progress: bool = False,
) -> Tensor:
    """The signed distance of each feature from the nearest hyperplane of its class: positive on the side of the class.

    The class is the label, or the predicted one where no labels are given; then the distance is never negative and is the
    least that a feature must move to change the answer.
    """
    require(features.ndim == 2 and len(features) > 0, "features", "at least one, images x dimensions", tuple(features.shape))
    features = in_place_of(head, features)
    if labels is not None:
        labels = check_labels(labels, head.out_features, len(features)).to(features.device)
    between, found = weight_distances(head), []
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "hyperplanes"):
            classes = logits_at(head, features[part]).argmax(1) if labels is None else labels[part]
            found.append(signed_distances(head, features[part], classes, between).amin(1))
    return torch.cat(found)
