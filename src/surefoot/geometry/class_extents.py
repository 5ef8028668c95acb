"""How wide a class is in feature space and how near it comes to a decision boundary."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Features, Labels, check_labels
from .batching import slices
from .heads import in_place_of
from .hyperplanes import signed_distances, weight_distances

BLOCK = 1024  # features against features at a time


@dataclass(frozen=True)
class ClassShapes:
    """For each class; NaN where it has no image.

    `margins` are unsigned as Def. 5.1 has them, so a sample far on the wrong side counts as far; `signed_margins` are
    negative as soon as one sample of the class is on the wrong side.
    """

    dispersions: Tensor
    margins: Tensor
    signed_margins: Tensor
    counts: Tensor


def class_shapes(
    head: nn.Linear, features: Features, labels: Labels, *, batch_size: int = 4096, progress: bool = False
) -> ClassShapes:
    """Dispersion (discriminative Def. 3.1) and margin (Def. 5.1) of every class, exact, in memory of order n."""
    require(features.ndim == 2 and len(features) > 0, "features", "at least one, images x dimensions", tuple(features.shape))
    features = in_place_of(head, features)
    labels = check_labels(labels, head.out_features, len(features)).to(features.device)
    between, unsigned, signed = weight_distances(head), [], []
    with torch.no_grad():
        for part in slices(len(features), batch_size, progress, "class margins"):
            distances = signed_distances(head, features[part], labels[part], between)
            unsigned.append(distances.abs().amin(1))
            signed.append(distances.amin(1))
    empty = features.new_full((head.out_features,), torch.nan)
    near = empty.scatter_reduce(0, labels, torch.cat(unsigned), "amin", include_self=False)
    near_signed = empty.scatter_reduce(0, labels, torch.cat(signed), "amin", include_self=False)
    widths = empty.clone()
    present = labels.unique().tolist()
    for place in slices(len(present), 1, progress, "class dispersion"):
        number = present[place.start]
        widths[number] = diameter(features[labels == number])
    return ClassShapes(widths, near, near_signed, labels.bincount(minlength=head.out_features))


def diameter(points: Features) -> float:
    """The largest distance between two points, exact to rounding.

    A matmul screens the pairs block by block; those that its rounding error leaves in question are measured by differences.
    """
    points = points - points.mean(0)
    squares = points.square().sum(1)
    slack = 4 * (points.shape[1] + 8) * torch.finfo(points.dtype).eps
    far = points[squares.argmax()]
    best = float(torch.linalg.vector_norm(points - far, dim=1).max())  # a good guess leaves few pairs in question
    for start in range(0, len(points), BLOCK):
        left, left_squares = points[start : start + BLOCK], squares[start : start + BLOCK].unsqueeze(1)
        for other in range(start, len(points), BLOCK):
            right, sums = points[other : other + BLOCK], left_squares + squares[other : other + BLOCK]
            screened = torch.addmm(sums, left, right.T, alpha=-2)
            asked = (screened + slack * sums > best * best).nonzero()
            if len(asked) > BLOCK:
                whole = torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
                best = max(best, float(whole.max()))
            elif len(asked):
                apart = torch.linalg.vector_norm(left[asked[:, 0]] - right[asked[:, 1]], dim=1)
                best = max(best, float(apart.max()))
    return best
