"""FAB-T (Croce and Hein 2020, "Minimally distorted adversarial examples ..."): towards the nearest point of another class."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Images, Labels, Logits
from .gradients import input_gradient, warn_if_randomised
from .hyperplanes import to_hyperplane
from .losses import likely_targets
from .norms import Ball, sources
from .survivors import Standing, standing

TOWARDS_IMAGE = 0.1  # alpha_max: the largest weight of the projection of the clean image
OVERSHOOT = 1.05  # eta
BACKWARD = 0.9  # beta: where an adversarial point goes on, as a share of its way from the image


def fab(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    norm: str = "linf",
    iterations: int = 100,
    restarts: int = 1,
    targets: int = 9,
    *,
    seed: int = 0,
    indices: Tensor | None = None,
) -> Images:
    """Adversarial images where one was found in the ball, the clean ones elsewhere.

    For each of the `targets` most likely wrong classes: project the point and the image onto the linearised boundary to that
    class, mix both, and go back towards the image wherever the result is adversarial but too far. An image leaves as soon as
    it is broken inside the ball. The first run starts at the image, more `restarts` at random within eps / 2.
    """
    ball = Ball(norm, eps)
    for name, number in (("iterations", iterations), ("restarts", restarts), ("targets", targets)):
        require(number >= 1, name, "at least 1", number)
    source = sources("fab", len(images), None, seed, indices)
    with standing(model, images, labels) as left:
        warn_if_randomised(model, "use AutoAttack's version='rand'")
        aimed = likely_targets(left.clean, left.labels, targets)
        for number in range(aimed.shape[1]):
            for restart in range(restarts):
                if not left or eps == 0:
                    return left.found
                start = left.images[left.rows]
                if restart:
                    start = Ball(norm, eps / 2).draw(start, source(left.rows), f"target {number}, restart {restart}")
                approach(model, left, ball, start, aimed[:, number], iterations)
        return left.found


def approach(model: nn.Module, left: Standing, ball: Ball, points: Images, targets: Labels, iterations: int) -> None:
    """One run towards a class for each image that stands."""
    rows, images = left.rows, left.images[left.rows]
    pairs = torch.stack([targets, left.labels], 1)[rows]
    for _ in range(iterations):

        def ahead(logits: Logits, pairs: Tensor = pairs) -> Tensor:
            """By how much the target is ahead of the label: 0 at the boundary."""
            target, label = logits.gather(1, pairs).unbind(1)
            return target - label

        slopes, _, values = input_gradient(model, points, ahead)
        points = step(points, images, slopes, values, ball)
        with torch.no_grad():
            wrong = model(points).argmax(1) != pairs[:, 1]
        if not bool(wrong.any()):
            continue
        broken = wrong & ball.contains(points, images)
        back = torch.where(wrong, BACKWARD, 1.0).to(points)[:, None, None, None]
        if bool(broken.any()):
            left.leave(rows[broken], points[broken])
            rows, images, pairs, points, back = (part[~broken] for part in (rows, images, pairs, points, back))
            if not len(rows):
                return
        points = torch.lerp(images, points, back)


def step(points: Images, images: Images, slopes: Tensor, values: Tensor, ball: Ball) -> Images:
    """x <- (1 - a) (x + eta d(x)) + a (x_0 + eta d(x_0)), d the way to the linearised boundary, a by how long both ways are."""
    flat = partial(torch.flatten, start_dim=1)
    normals = flat(slopes)
    offsets = (normals * flat(points)).sum(1) - values
    both = torch.cat([flat(points), flat(images)])
    ways = to_hyperplane(both, torch.cat([normals, normals]), torch.cat([offsets, offsets]), ball.norm)
    own, clean = (way.view_as(points) for way in ways.chunk(2))
    near, far = (ball.sizes(way).clamp_min(1e-8) for way in (own, clean))
    share = (near / (near + far)).clamp_max(TOWARDS_IMAGE)[:, None, None, None]
    return ((1 - share) * (points + OVERSHOOT * own) + share * (images + OVERSHOOT * clean)).clamp(0, 1)
