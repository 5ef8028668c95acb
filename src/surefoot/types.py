"""The vocabulary that every room shares: what goes into a model, what comes out, and a number with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from .errors import NotFiniteScores, SurefootError, require
from .intervals import Estimate as Estimate

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
Images: TypeAlias = Tensor  # float in [0, 1], batch x channels x height x width
Labels: TypeAlias = Tensor  # int64, batch
Logits: TypeAlias = Tensor  # float, batch x classes
Features: TypeAlias = Tensor  # float, batch x dimensions


@dataclass(frozen=True)
class Batch:
    """Some images of a split, with their labels and their indices in the data set."""

    images: Images
    labels: Labels
    indices: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: Tensor | slice) -> Batch:
        """Some of the images."""
        here = rows if isinstance(rows, slice) else rows.to(self.images.device)
        return Batch(self.images[here], self.labels[here], self.indices[rows])


@dataclass(frozen=True)
class Outputs:
    """What one pass gives: the logits, and the features that entered the last linear layer."""

    logits: Logits
    features: Features


@dataclass(frozen=True)
class Terms:
    """What an objective gives for a batch: the scalar to minimise, its detached parts by name, and the logits.

    The logits are those of the images as given, or of the changed ones where the method trains on nothing else.
    """

    total: Tensor
    parts: dict[str, Tensor]
    logits: Logits


@dataclass(frozen=True)
class Predictions:
    """A model's predictions on a split. Say what you have: `from_logits` or `from_probabilities`; the range is never guessed.

    Log-probabilities are logits whose softmax is known, so both are held as `logits`.

    Examples:
        >>> import torch
        >>> import surefoot as sf
        >>> predictions = sf.Predictions.from_logits(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
        >>> len(predictions), predictions.logits.argmax(1).tolist()
        (2, [0, 1])
    """

    logits: Logits
    labels: Labels
    features: Features | None = None
    indices: Tensor | None = None
    class_names: tuple[str, ...] | None = None  # kept by a CSV; other files hold numbers alone

    @classmethod
    def from_logits(
        cls, logits: Logits, labels: Labels, features: Features | None = None, indices: Tensor | None = None
    ) -> Predictions:
        return cls(torch.as_tensor(logits), torch.as_tensor(labels), features, indices)

    def __post_init__(self) -> None:
        check_scores("logits", self.logits)
        for name in ("features", "indices"):
            if (given := getattr(self, name)) is not None:
                require(len(given) == len(self.logits), name, f"one for each of {len(self.logits)} images", len(given))
        if self.class_names is not None:
            distinct = len(set(self.class_names)) == len(self.class_names) == self.num_classes
            require(distinct, "class_names", f"{self.num_classes} different names", list(self.class_names))
        object.__setattr__(self, "labels", check_labels(self.labels, self.logits.shape[1], len(self.logits)))

    @classmethod
    def from_probabilities(
        cls, probabilities: Tensor, labels: Labels, features: Features | None = None, indices: Tensor | None = None
    ) -> Predictions:
        p = torch.as_tensor(probabilities)
        check_scores("probabilities", p)
        off = int((((p.sum(1) - 1).abs() > 1e-3) | (p < 0).any(1)).sum())
        if off:
            raise SurefootError(f"probabilities must be >= 0 and sum to 1; {off} of {len(p)} images do not.")
        return cls.from_logits(p.clamp_min(torch.finfo(p.dtype).tiny).log(), labels, features, indices)

    @classmethod
    def load(cls, path: str | Path) -> Predictions:
        """Read a folder of chunks, `.safetensors`, `.npz` or `.csv`."""
        from .storage import StoredPredictions

        return StoredPredictions(path).load()

    def save(self, path: str | Path) -> None:
        """Write a `.safetensors`, `.npz` or `.csv`, or, to a name without a suffix, a folder of chunks."""
        from .storage import write_predictions

        write_predictions(path, [self])

    @classmethod
    def join(cls, parts: Iterable[Predictions]) -> Predictions:
        """Batches as one; features, indices and names of classes where every batch has them."""
        parts = list(parts)
        require(len(parts) > 0, "parts", "at least one", 0)

        def whole(name: str) -> Any:
            values = [getattr(part, name) for part in parts]
            return None if any(value is None for value in values) else torch.cat(values)

        named = {part.class_names for part in parts}
        require(len(named - {None}) <= 1, "parts", "of the same classes", len(named))
        names = named.pop() if len(named) == 1 else None
        return cls(whole("logits"), whole("labels"), whole("features"), whole("indices"), names)

    @property
    def num_classes(self) -> int:
        return self.logits.shape[1]

    @property
    def log_probabilities(self) -> Tensor:
        return self.logits.log_softmax(1)

    @property
    def classes(self) -> Tensor:
        """The predicted class of each image; the first of equals."""
        return self.logits.argmax(1)

    @property
    def confidences(self) -> Tensor:
        """The probability of the predicted class of each image."""
        exact = self.logits if self.logits.dtype == torch.float64 else self.logits.float()
        return exact.softmax(1).amax(1)

    @property
    def correct(self) -> Tensor:
        return self.classes == self.labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: Tensor | slice) -> Predictions:
        """The predictions for some of the images."""
        return replace(
            self,
            logits=self.logits[chosen],
            labels=self.labels[chosen],
            features=None if self.features is None else self.features[chosen],
            indices=None if self.indices is None else self.indices[chosen],
        )


def check_scores(argument: str, scores: Tensor) -> None:
    """Refuse anything but finite numbers, images x classes, for two classes at least."""
    require(scores.ndim == 2, argument, "images x classes", tuple(scores.shape))
    require(scores.shape[1] >= 2, argument, "images x classes with at least 2 classes", tuple(scores.shape))
    require(scores.dtype in FLOATS, argument, "floating point of 16, 32 or 64 bits", scores.dtype)
    if len(scores):
        low, high = scores.aminmax(dim=1)
        bad = int((~(low.isfinite() & high.isfinite())).sum())
        if bad:
            first = int((~(low.isfinite() & high.isfinite())).nonzero()[0])
            raise NotFiniteScores(
                f"{argument} must be finite; {bad} of {len(scores)} images have NaN or infinity (first: {first})."
            )
        largest = max(float(high.max()), -float(low.min()))
        require(largest <= torch.finfo(torch.float32).max, argument, "within single precision", largest)


def finite_logits(logits: Logits) -> Logits:
    """The same logits; NaN, whose argmax would be class 0, is an error."""
    check_scores("logits", logits)
    return logits


def check_images(images: Images, argument: str = "images") -> None:
    """Refuse anything but a batch of pixels in [0, 1]."""
    require(images.ndim == 4, argument, "batch x channels x height x width", tuple(images.shape))
    require(images.is_floating_point(), argument, "floating point in [0, 1]", images.dtype)
    if images.numel():
        low, high = (float(v) for v in images.detach().aminmax())
        if not (low >= 0 and high <= 1):
            raise SurefootError(f"{argument} must be in [0, 1], got {low:.3g} to {high:.3g}.")


def check_labels(labels: Labels, classes: int, count: int) -> Labels:
    """Refuse anything but `count` whole numbers in [0, classes); give them as int64.

    The range is checked on the CPU only: elsewhere it would make the device wait.
    """
    require(labels.ndim == 1 and len(labels) == count, "labels", f"one for each of {count} images", tuple(labels.shape))
    whole = not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)
    require(whole, "labels", "whole numbers", labels.dtype)
    labels = labels.long()  # torch finds no extremes of uint16, uint32 and uint64
    if labels.device.type == "cpu" and count:
        low, high = (int(v) for v in labels.aminmax())
        if not (low >= 0 and high < classes):
            raise SurefootError(f"labels must be in 0 to {classes - 1}, got {low} to {high}.")
    return labels
