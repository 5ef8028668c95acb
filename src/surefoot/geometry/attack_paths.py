"""The way of a feature through representation space while its image is attacked (representation-space Fig. 5, 13)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..attacks.gradients import input_gradient, untouched
from ..attacks.norms import Ball
from ..errors import require
from ..models.observing import head_of, observed
from ..types import Images, Labels, Logits, check_images, check_labels
from .batching import slices


@dataclass(frozen=True)
class AttackPath:
    """Where the features are before the attack and after each of its steps.

    `features` is (steps + 1) x images x dimensions, `predicted` (steps + 1) x images.
    """

    features: Tensor
    predicted: Tensor
    labels: Labels


def attack_path(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    steps: int = 7,
    step_size: float | None = 2 / 255,
    batch_size: int = 256,
    progress: bool = False,
) -> AttackPath:
    """The path of PGD (L-inf) from the clean images; with `steps=1, step_size=eps` it is FGSM's.

    Without a random start, so that the path begins at the clean feature as in Fig. 13. `step_size=None` is 2.5 eps / steps.
    """
    check_images(images)
    require(steps >= 1, "steps", "at least 1", steps)
    require(len(images) > 0, "images", "at least one", len(images))
    ball, size = Ball("linf", eps), 2.5 * eps / steps if step_size is None else step_size
    head = head_of(model, images)
    labels = check_labels(labels, head.out_features, len(images))
    features, predicted = [], []
    with untouched(model):
        for part in slices(len(images), batch_size, progress, "attack"):
            points, right = images[part].detach(), labels[part]
            anchors = ball.anchors(points)
            seen = []

            def measure(logits: Logits, right: Labels = right) -> Tensor:
                return F.cross_entropy(logits, right, reduction="none")

            for step in range(steps + 1):
                with torch.no_grad():
                    seen.append(observed(model, head, points))
                if step < steps:
                    gradient, _ = input_gradient(model, points, measure)
                    points = ball.step(points, gradient, size, anchors)
            features.append(torch.stack([outputs.features for outputs in seen]))
            predicted.append(torch.stack([outputs.logits.argmax(1) for outputs in seen]))
    return AttackPath(torch.cat(features, 1), torch.cat(predicted, 1), labels)
