"""A few numbers for each image, from which every score follows when the logits are gone.

They come from logits, or as plain columns, such as those of an audit's table; then torch is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..errors import require
from .bins import Entries, ReliabilityBins, bin_of
from .bootstrap import chosen_ids
from .ranking import Order

if TYPE_CHECKING:
    from ..types import Predictions

Array = NDArray[Any]


@dataclass(frozen=True)
class PerImage:
    """What is left of predictions when their logits are gone; one number of each kind for each image.

    Without the logits `top5`, `entries` and `totals` are None, and scores that need them cannot be had.
    """

    confidences: Array
    correct: Array
    losses: Array  # -log p of the label
    squares: Array  # sum over classes of (p - [label])^2
    top5: Array | None
    labels: Array
    entries: Entries | None
    totals: Array | None  # the sum of every class's probability
    reliability: ReliabilityBins
    ids: Array  # of the images; bootstrap weights belong to them

    @classmethod
    def from_columns(
        cls,
        confidences: ArrayLike,
        correct: ArrayLike,
        losses: ArrayLike,
        squares: ArrayLike,
        labels: ArrayLike,
        ids: ArrayLike | None,
        bins: int,
    ) -> PerImage:
        """From columns of the same length; the ids are 0, 1, ... if not given."""
        sure, loss, square = (np.asarray(given, dtype=np.float64) for given in (confidences, losses, squares))
        right, classes = np.asarray(correct).astype(bool), np.asarray(labels)
        require(len(sure) > 0, "columns", "of at least one image", 0)
        for name, given in (("correct", right), ("losses", loss), ("squares", square), ("labels", classes)):
            require(len(given) == len(sure), name, f"one for each of {len(sure)} images", len(given))
        table = ReliabilityBins.of(sure, right, bins)
        return cls(sure, right, loss, square, None, classes, None, None, table, chosen_ids(ids, len(sure)))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def bins(self) -> int:
        return len(self.reliability.counts)

    @property
    def means(self) -> dict[str, Array]:
        """The columns whose means are scores."""
        columns = {"accuracy": self.correct, "nll": self.losses, "brier": self.squares}
        return columns if self.top5 is None else {**columns, "top5": self.top5}

    @cached_property
    def bin_indices(self) -> Array:
        """Which bin each image is in."""
        return bin_of(self.confidences, self.bins)

    @cached_property
    def membership(self) -> Array:
        """Which bin each image is in: images x bins, 0 or 1."""
        return np.eye(self.bins)[self.bin_indices]

    @cached_property
    def mean_matrix(self) -> Any:
        """The columns of `means` as rows: a product with weights gives their sums."""
        return sparse.csr_array(np.stack([values.astype(np.float64) for values in self.means.values()]))

    @cached_property
    def binned_matrix(self) -> Any:
        """Confidence minus right, 1, and c (1 - c), each in the row of its bin: (3 x bins) x images."""
        sure, images = self.confidences, len(self)
        values = np.concatenate([sure - self.correct, np.ones(images), sure * (1 - sure)])
        rows = np.concatenate([self.bin_indices + k * self.bins for k in range(3)])
        return sparse.csr_array((values, (rows, np.tile(np.arange(images), 3))), shape=(3 * self.bins, images))

    @cached_property
    def order(self) -> Order:
        return Order.of(self.confidences, self.correct)

    @cached_property
    def class_matrix(self) -> Any:
        """The rows of `Entries.class_matrix`."""
        assert self.entries is not None
        assert self.totals is not None
        return self.entries.class_matrix(self.labels, len(self.totals), self.bins)


def per_image(predictions: Predictions | Iterable[Predictions], bins: int) -> PerImage:
    """Read the logits once, holding the probabilities of a block only."""
    from .softmax_blocks import read_logits

    return read_logits(predictions, bins)
