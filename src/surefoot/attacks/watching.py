"""See what an attack asks of a model, and stop it as soon as it has what it wants."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..types import Images, Labels, Logits
from .balls import Ball

EARLY = (
    25  # passes within which a restart on half of the images is cheaper than going on with all: the attacks take 100 and more
)


class Enough(Exception):
    """Every image of the batch is broken, or at least half of them so early that it pays to start again with the rest."""


class Watch:
    """The model as a function that remembers the points of the ball where an image was classified wrongly.

    Only passes over the whole batch are looked at, since an attack on some of its images does not say on which.
    """

    def __init__(self, model: nn.Module, images: Images, labels: Labels, ball: Ball, remember: bool) -> None:
        self.model, self.images, self.labels, self.ball, self.remember = model, images, labels, ball, remember
        self.points, self.broken = images.clone(), torch.zeros(len(images), dtype=torch.bool, device=images.device)
        self.dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), images.dtype)
        self.passes, self.classes = 0, 0

    def __call__(self, points: Images) -> Logits:
        if not len(points):
            return points.new_zeros(0, self.classes)
        logits: Tensor = self.model(points.to(self.dtype)).float()
        self.passes, self.classes = self.passes + 1, logits.shape[1]
        if self.remember and len(points) == len(self.images):
            self.look(points.detach(), logits.detach())
        return logits

    def look(self, points: Images, logits: Logits) -> None:
        """Note what is broken; stop the attack when that is enough."""
        new = (logits.argmax(1) != self.labels) & ~self.broken
        if not bool(new.any()):
            return
        new &= self.ball.contains(points, self.images)
        self.points[new] = points[new]
        self.broken |= new
        count = int(self.broken.sum())
        if count == len(self.images) or (self.passes <= EARLY and 2 * count >= len(self.images)):
            raise Enough
