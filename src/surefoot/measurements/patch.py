"""A patch that somebody could print: trained on other pictures than it is judged on, with a grey one of its size beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..attacks._patch import BATCH, patch_side, put_patch, train_patch
from ..data.dataset import Split, whole
from ..data.subsets import choose, taken
from ..errors import require
from ..types import Batch, Images
from .attacks import summarise_attack
from .base import Change, Measurement, Summary, Table

if TYPE_CHECKING:
    from .context import Context

ALONE = "No patch was trained: no images are left beside those that it would be judged on."


@dataclass(frozen=True)
class Patched(Change):
    """The trained patch, or a grey one, on every picture at a place that the image's index draws."""

    share: float
    steps: int
    train_images: int
    max_images: int | None
    trained: bool = True

    @property
    def name(self) -> str:
        return f"{'patch' if self.trained else 'grey-patch'}-{100 * self.share:g}"

    @property
    def passes(self) -> float:
        """The training is shared by all images; 1,000 of them, say."""
        return 1 + 3 * self.steps * BATCH / 1000 if self.trained else 1

    def images(self, context: Context, batch: Batch) -> Images:
        return put_patch(batch.images, self.patch(context, batch.images), seed=context.seed, indices=batch.indices)

    def patch(self, context: Context, images: Images) -> Tensor:
        """Trained once for all chunks."""
        if not self.trained:
            side = patch_side(self.share, *images.shape[2:])
            return torch.full((images.shape[1], side, side), 0.5)
        return context.once(("patch", self), lambda: self.train(context))

    def train(self, context: Context) -> Tensor:
        others = training_pictures(context, self.train_images, self.max_images)
        batch = whole(others, context.batch_size, context.device)
        return train_patch(context.model, batch.images, batch.labels, self.share, self.steps, seed=context.seed)


def training_pictures(context: Context, count: int, max_images: int | None) -> Split:
    """Pictures that the patch is not judged on: of the training split, or those of the audited split that are left."""
    if context.split != "train" and len(context.data.train):
        return choose(context.data.train, count, context.seed)
    left = torch.ones(len(context.images), dtype=torch.bool).index_fill_(0, context.rows(max_images), False)
    return taken(context.images, left.nonzero().flatten()[:count])


class Patch(Measurement):
    """Success of one patch, with `share` of the picture, among images that were right; of a grey one too, which only covers."""

    part = "attacks"

    def __init__(self, share: float = 0.05, steps: int = 200, train_images: int = 500, max_images: int | None = 1000) -> None:
        require(0 < share <= 1, "share", "above 0 and at most 1", share)
        require(steps >= 1, "steps", "at least 1", steps)
        require(train_images >= 1, "train_images", "at least 1", train_images)
        self.share, self.steps, self.train_images, self.max_images = share, steps, train_images, max_images

    def conditions(self, context: Context) -> Sequence[Patched]:
        if not len(training_pictures(context, self.train_images, self.max_images)):
            return []
        own = (self.share, self.steps, self.train_images, self.max_images)
        return [Patched(*own), Patched(*own, trained=False)]

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        clean, conditions = table.clean(self.max_images), self.conditions(context)
        under = {each.name: table.rows(each.name, self.max_images) for each in conditions}
        values = {name: summarise_attack(clean, rows, None, context) for name, rows in under.items()}
        return Summary(values, notes=() if conditions else (ALONE,))

    def numbers(self, summary: Summary) -> dict[str, float]:
        return {f"robust.{name}": float(each.robust_accuracy) for name, each in summary.values.items()}
