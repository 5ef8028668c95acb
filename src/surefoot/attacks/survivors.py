"""The images of a batch that withstand an attack so far: who is broken leaves, with the point that broke it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ..types import Images, Labels, Logits, check_images, check_labels, check_scores
from .gradients import OutOfTime, untouched


class Standing:
    """`found` are the images to give back: adversarial where one was found, clean elsewhere; `rows` those that still stand."""

    def __init__(self, model: nn.Module, images: Images, labels: Labels) -> None:
        self.images = images.detach().clone()
        self.found = self.images.clone()
        with torch.no_grad():
            self.clean: Logits = model(self.images)
        check_scores("logits", self.clean)
        self.labels = check_labels(labels, self.clean.shape[1], len(images))
        self.rows = (self.clean.argmax(1) == self.labels).nonzero().flatten()

    def __bool__(self) -> bool:
        return len(self.rows) > 0

    def wrong(self, logits: Logits, rows: Tensor) -> Tensor:
        """Which of these images are classified wrongly now."""
        return logits.argmax(1) != self.labels[rows]

    def leave(self, rows: Tensor, points: Images) -> None:
        """Images that were broken, and where."""
        self.found[rows] = points.to(self.found)
        gone = torch.zeros(len(self.images), dtype=torch.bool, device=self.rows.device)
        gone[rows] = True
        self.rows = self.rows[~gone[self.rows]]


@contextmanager
def standing(model: nn.Module, images: Images, labels: Labels) -> Iterator[Standing]:
    """The images that are right to begin with. When time runs out, what was found until then goes with the exception."""
    check_images(images)
    with untouched(model):
        here = Standing(model, images, labels)
        try:
            yield here
        except OutOfTime as stop:
            stop.images = here.found
            raise
