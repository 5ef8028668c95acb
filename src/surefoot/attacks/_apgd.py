"""APGD (Croce and Hein 2020, "Reliable evaluation ..."): ascent with momentum whose step size looks after itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import require
from ..types import Images, Labels, Logits
from .gradients import input_gradient, warn_if_randomised
from .losses import TARGETED, UNTARGETED, check_loss, likely_targets
from .norms import Ball, sources
from .survivors import Standing, standing

CHECKPOINTS = (22, 41, 57, 70, 80, 87, 93, 99)  # per cent of the iterations: p_1 = 22, and each gap is 3 shorter, at least 6
MOMENTUM = 0.75  # share of the new step; the rest is the step before
SHRINKING = ((3, 0.3), (2, 0.3), (1, 0.4))  # in L1: balls of 3, 2 and 1 eps, with shares of the iterations
Aim = Callable[[Tensor, Logits], Tensor]  # the loss of the images in these rows


def apgd(
    model: nn.Module,
    images: Images,
    labels: Labels,
    eps: float = 8 / 255,
    norm: str = "linf",
    loss: str = "ce",
    iterations: int = 100,
    restarts: int = 1,
    targets: int = 9,
    rho: float = 0.75,
    eot: int = 1,
    *,
    seed: int = 0,
    indices: Tensor | None = None,
) -> Images:
    """Adversarial images where one was found in the ball, the clean ones elsewhere; an image leaves as soon as it is broken.

    `loss` is ce, dlr, probability-margin, or dlr-targeted, which is run for each of the `targets` most likely wrong classes.
    Steps begin at 2 eps and are halved, going back to the best point, at checkpoints where fewer than `rho` of the steps
    climbed, or where nothing improved although the step stayed. In L1 steps are sparse and the ball shrinks from 3 eps (Croce
    and Hein 2021). `eot` averages over so many draws of a randomised model. Starts are drawn as for `pgd`.
    """
    ball = Ball(norm, eps)
    check_loss(loss)
    for name, number in (("iterations", iterations), ("restarts", restarts), ("targets", targets), ("eot", eot)):
        require(number >= 1, name, "at least 1", number)
    require(0 < rho <= 1, "rho", "in (0, 1]", rho)
    source = sources(f"apgd-{loss}", len(images), None, seed, indices)
    with standing(model, images, labels) as left:
        if eot == 1:
            warn_if_randomised(model, "use eot=20 or AutoAttack's version='rand'")
        aimed = likely_targets(left.clean, left.labels, targets) if loss in TARGETED else None
        for number in range(1 if aimed is None else aimed.shape[1]):
            aim = aim_at(loss, left.labels, None if aimed is None else aimed[:, number])
            for restart in range(restarts):
                if not left or eps == 0:
                    return left.found
                start = partial(ball.draw, source=source(left.rows), purpose=f"target {number}, restart {restart}")
                climb(model, left, aim, ball, start, iterations, rho, eot)
        return left.found


def aim_at(loss: str, labels: Labels, targets: Labels | None) -> Aim:
    """The loss of some rows, towards their targets if it has any."""
    if targets is None:
        return lambda rows, logits: UNTARGETED[loss](logits, labels[rows])
    return lambda rows, logits: TARGETED[loss](logits, labels[rows], targets[rows])


def climb(
    model: nn.Module,
    left: Standing,
    aim: Aim,
    ball: Ball,
    start: Callable[[Images], Images],
    iterations: int,
    rho: float,
    eot: int,
) -> None:
    """One run on the images that stand."""
    if ball.norm != "l1":
        ascend(Ascent, model, left, left.rows, aim, ball, start(left.images[left.rows]), iterations, rho, eot)
        return
    from .apgd_l1 import SparseAscent

    rows = left.rows
    points = Ball("l1", SHRINKING[0][0] * ball.eps).project(start(left.images[rows]), left.images[rows])
    for factor, share in SHRINKING:
        inside = Ball("l1", factor * ball.eps)
        points = inside.project(points, left.images[rows])
        count = ceil(share * iterations)
        points = ascend(SparseAscent, model, left, rows, aim, inside, points, count, rho, eot, counts=factor == 1)


@dataclass
class Ascent:
    """What is known of each image on its way up; steps for L-inf and L2."""

    rows: Tensor
    images: Images
    points: Images
    previous: Images
    gradient: Tensor
    loss: Tensor
    best: Images
    best_gradient: Tensor
    best_loss: Tensor
    step: Tensor
    rises: Tensor  # steps that climbed since the last checkpoint
    checked_loss: Tensor  # the best loss at the last checkpoint
    halved: Tensor  # whether the step was halved there

    @classmethod
    def begin(cls, ball: Ball, rows: Tensor, images: Images, points: Images, gradient: Tensor, loss: Tensor) -> Any:
        size = torch.full((len(rows), 1, 1, 1), cls.first_step(ball), dtype=points.dtype, device=points.device)
        rises, halved = torch.zeros_like(loss), torch.zeros_like(loss, dtype=torch.bool)
        known = (points, points, gradient, loss, points.clone(), gradient.clone(), loss)
        return cls(rows, images, *known, size, rises, loss.clone(), halved)

    @staticmethod
    def first_step(ball: Ball) -> float:
        return 2 * ball.eps

    def keep(self, chosen: Tensor) -> None:
        """Go on with some of the images."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[chosen])

    def move(self, ball: Ball, number: int) -> None:
        """z = P(x + step * direction), then P(x + 0.75 (z - x) + 0.25 (x - x of before)); the first step goes to z."""
        ahead = ball.project(self.points + self.step * ball.steepest(self.gradient), self.images)
        if number > 1:
            ahead = self.points + MOMENTUM * (ahead - self.points) + (1 - MOMENTUM) * (self.points - self.previous)
            ahead = ball.project(ahead, self.images)
        self.previous, self.points = self.points, ahead

    def look(self, gradient: Tensor, loss: Tensor) -> None:
        """Take in what the model says at the new points."""
        self.rises += loss > self.loss
        self.gradient, self.loss = gradient, loss
        better = loss > self.best_loss
        chosen = better[:, None, None, None]
        self.best = torch.where(chosen, self.points, self.best)
        self.best_gradient = torch.where(chosen, gradient, self.best_gradient)
        self.best_loss = torch.maximum(self.best_loss, loss)

    def check(self, ball: Ball, number: int, iterations: int, rho: float) -> None:
        """At a checkpoint, halve the steps that do not get on and go back to the best point."""
        before = last_checkpoint(number, iterations)
        if before is None:
            return
        stuck = ~self.halved & (self.best_loss <= self.checked_loss)
        self.halved = (self.rises < rho * (number - before)) | stuck
        self.step[self.halved] /= 2
        self.back(self.halved)
        self.rises.zero_()
        self.checked_loss = self.best_loss.clone()

    def back(self, chosen: Tensor) -> None:
        """Some images return to their best point."""
        self.points[chosen], self.gradient[chosen] = self.best[chosen], self.best_gradient[chosen]
        self.loss = torch.where(chosen, self.best_loss, self.loss)


def checkpoints(iterations: int) -> list[int]:
    """The iterations after which step sizes are looked at: w_j = ceil(p_j N)."""
    return sorted({-(-share * iterations // 100) for share in CHECKPOINTS})


def last_checkpoint(number: int, iterations: int) -> int | None:
    """The checkpoint before this one, 0 before the first; None if this is none."""
    places = [0, *checkpoints(iterations)]
    return places[places.index(number) - 1] if number in places[1:] else None


def ascend(
    kind: type[Ascent],
    model: nn.Module,
    left: Standing,
    rows: Tensor,
    aim: Aim,
    ball: Ball,
    points: Images,
    iterations: int,
    rho: float,
    eot: int,
    counts: bool = True,
) -> Images:
    """Climb from these points for so many iterations, and give the best points; what breaks leaves, if it `counts`."""
    gradient, logits, loss = input_gradient(model, points, partial(aim, rows), eot)
    state = kind.begin(ball, rows, left.images[rows], points, gradient, loss)
    for number in range(iterations + 1):
        if number:
            state.move(ball, number)
            gradient, logits, loss = input_gradient(model, state.points, partial(aim, state.rows), eot)
            state.look(gradient, loss)
        if counts and bool((broken := left.wrong(logits, state.rows)).any()):
            left.leave(state.rows[broken], state.points[broken])
            state.keep(~broken)
            if not len(state.rows):
                break
        state.check(ball, number, iterations, rho)
    best: Images = state.best
    return best
