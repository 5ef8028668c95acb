"""APGD's steps in L1 (Croce and Hein 2021, "Mind the box"): only the pixels with the steepest slopes move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..types import Images
from ._apgd import Ascent
from .norms import Ball

EVERY = 4  # per cent of the iterations between checkpoints
SPARSER = 1.5  # by which the number of moving pixels and the step shrink
SMALLEST = 10  # times smaller than the first step is the smallest
FEWER = 0.95  # pixels changed, relative to the checkpoint before, that count as sparser


@dataclass
class SparseAscent(Ascent):
    """`share` of the pixels move in a step; `changed` is how many differ from the image at the best point."""

    share: Tensor
    changed: Tensor

    @classmethod
    def begin(cls, ball: Ball, rows: Tensor, images: Images, points: Images, gradient: Tensor, loss: Tensor) -> Any:
        plain = Ascent.begin(ball, rows, images, points, gradient, loss)
        plain.step.fill_(cls.first_step(ball))
        changed = changes(points, images)
        return cls(**vars(plain), share=changed / images[0].numel() / SPARSER, changed=changed)

    @staticmethod
    def first_step(ball: Ball) -> float:
        return ball.eps

    def move(self, ball: Ball, number: int) -> None:
        """A step of L1 length `step`, shared alike by the pixels with the steepest slopes, and back into the ball and box."""
        slopes = self.gradient.flatten(1).abs()
        pixels = slopes.shape[1]
        place = ((1 - self.share) * pixels).clamp(0, pixels - 1).long()
        steep = slopes >= slopes.sort(1).values.gather(1, place[:, None])
        signs = self.gradient.flatten(1).sign() * steep
        unit = signs / signs.abs().sum(1, keepdim=True).clamp_min(1)
        self.previous = self.points
        self.points = ball.project(self.points + self.step * unit.view_as(self.points), self.images)

    def check(self, ball: Ball, number: int, iterations: int, rho: float) -> None:
        """Where the best point became sparser, steps are long again and start from it; elsewhere they get shorter."""
        if number == 0 or number % max(EVERY * iterations // 100, 1):
            return
        changed = changes(self.best, self.images)
        sparser = changed / self.changed.clamp_min(1) < FEWER
        self.share = changed / self.images[0].numel() / SPARSER
        longest = self.first_step(ball)
        size = torch.where(sparser[:, None, None, None], longest, self.step / SPARSER)
        self.step = size.clamp(longest / SMALLEST, longest)
        self.changed = changed
        self.back(sparser)


def changes(points: Images, images: Images) -> Tensor:
    """How many pixels of each image differ."""
    return (points != images).flatten(1).sum(1).to(points.dtype)
