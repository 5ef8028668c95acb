"""What a measurement looks at: a model with its images, and what several measurements share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from ..calibration.arguments import CROSS_FIT
from ..calibration.calibrators import Calibrated
from ..corruptions.published import ArrayCopies, FolderCopies
from ..data.dataset import Dataset, Split, whole
from ..data.subsets import chosen_rows, indices_of, taken
from ..errors import SurefootError
from ..geometry.features import observed_features
from ..models.classifier import Classifier, answers, predict
from ..models.last_layer import evaluating
from ..objectives.base import Objective
from ..ood.foreign import ForeignSet
from ..seeds import global_seed
from ..training.recipes import Recipe
from ..training.runs import Run
from ..types import Batch, Images, Labels, Logits, Outputs, Predictions
from .promises import Promises, fit_promises
from .temperatures import Source, choose_temperatures

T = TypeVar("T")


class Trainer(Protocol):
    """How a study trains other models beside its own: each in its own folder, once, going on where it was stopped."""

    def run(self, recipe: Recipe, model: Classifier | None = None, suffix: str = "") -> Run: ...


@dataclass(frozen=True)
class Context:
    """A model, the split it is measured on, and how; what is needed twice is computed once.

    `model` is what predicts; `space` is the module whose last layer is linear, where features are looked at. Only a study
    knows the recipe and the objective, and trains other models beside its own; `work` keeps what is not finished.
    """

    model: nn.Module
    data: Dataset
    images: Split
    device: torch.device
    split: str = "test"
    batch_size: int = 256
    seed: int = 0
    calibrate_on: str | Predictions = CROSS_FIT
    allow_leakage: bool = False
    copies: ArrayCopies | FolderCopies | None = None
    published: Mapping[str, ArrayCopies | FolderCopies] = field(default_factory=dict)  # a study's copies, by their origin
    space: nn.Module | None = None
    recipe: Recipe | None = None
    objective: Objective | None = None
    work: Path | None = None
    trainer: Trainer | None = None
    foreign: Mapping[str, ForeignSet] = field(default_factory=dict)  # sets of pictures that are none of the classes
    part_of: tuple[Split, Tensor] | None = None  # the whole split and the rows of it that are audited, where not all are
    intervals: int = 1000  # bootstrap draws behind an interval; a study's intervals are over seeds, so it asks for none
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # by `once`

    @property
    def has_files(self) -> bool:
        return getattr(self.images, "files", None) is not None

    def file_of(self, index: int) -> str | None:
        """Split, class and name of an image's file, if it has one: what comes before them differs between machines."""
        files = getattr(self.images, "files", None)
        return None if files is None else "/".join(Path(files[index]).parts[-3:])

    def once(self, key: Any, compute: Callable[[], T]) -> T:
        """What `compute` gives, kept for whoever asks for the same key again."""
        if key not in self.kept:
            self.kept[key] = compute()
        value: T = self.kept[key]
        return value

    def shared(self, key: Any, compute: Callable[[], T]) -> T:
        """As `once`, for as long as a chunk of images is in memory."""
        value: T = self.once(("chunk", key), compute)
        return value

    def forget(self) -> None:
        """The chunk is gone, and what was shared about it."""
        for key in [key for key in self.kept if isinstance(key, tuple) and key[0] == "chunk"]:
            del self.kept[key]

    def forward(self, images: Images, *keys: int | str) -> Logits:
        """Logits on the CPU, batch by batch, in evaluation mode; `keys` seed a model that draws at random."""
        with global_seed(self.seed, "audit", *keys), evaluating(self.model), torch.inference_mode():
            return torch.cat(
                [answers(self.model, part.to(self.device)).float().cpu() for part in images.split(self.batch_size)]
            )

    def predictions_on(self, split: Split, *keys: int | str) -> Predictions:
        """Predictions on a whole split, as it is."""
        if len(split) == 0:
            raise SurefootError("The split has no images to measure on.")
        with global_seed(self.seed, "audit", *keys):
            return predict(self.model.to(self.device), split.batches(self.batch_size, device=self.device), self.device)

    @property
    def clean(self) -> Predictions:
        """Predictions on all images of the split, as they are; an audit puts them here after its first pass."""
        return self.once("clean", lambda: self.predictions_on(self.images, "clean"))

    @property
    def held_out(self) -> Predictions | None:
        """Predictions on the images that temperatures are fitted on, where those are others."""
        if isinstance(self.calibrate_on, Predictions):
            return self.calibrate_on
        if self.calibrate_on == CROSS_FIT:
            return None
        named = self.calibrate_on
        return self.once("held-out", lambda: self.predictions_on(self.data.split(named), "held-out"))

    @property
    def temperatures(self) -> Source | None:
        """Where the temperature of each image comes from; None for a single image."""
        options: dict[str, Any] = {"allow_leakage": self.allow_leakage}
        return self.once(
            "temperatures",
            lambda: choose_temperatures(self.clean, self.split, self.calibrate_on, self.seed, self.held_out, **options),
        )

    @property
    def promises(self) -> Promises | None:
        """Prediction sets and the threshold of a risk, fitted on other images than each is judged on; None for too few."""
        return self.once("promises", lambda: fit_promises(self.clean, self.held_out, self.seed))

    def subset(self, max_images: int | None) -> Split:
        """At most so many images of the split, every class in its share; the first of more."""
        rows = self.rows(max_images)
        if len(rows) == len(self.images):
            return self.images
        return self.once(("subset", max_images), lambda: taken(self.images, rows))

    def rows(self, max_images: int | None) -> Tensor:
        """Where the images of a subset stand in the split, in rising order; the same images whatever part is audited."""
        return self.once(("rows", max_images), lambda: self.choose_rows(max_images))

    def choose_rows(self, max_images: int | None) -> Tensor:
        if self.part_of is None:
            return chosen_rows(self.images, max_images, self.seed)
        split, audited = self.part_of
        count = len(audited) if max_images is None else min(max_images, len(audited))
        return torch.searchsorted(audited, chosen_rows(split, count, self.seed))

    @property
    def indices(self) -> Tensor:
        """Each image's index in the whole data set, in the order of the split."""
        return self.once("indices", lambda: indices_of(self.images, self.batch_size))

    def rows_at(self, indices: Tensor) -> Tensor:
        """Where the images with these indices stand in the split."""
        row_of = self.once("rows of indices", lambda: {int(index): row for row, index in enumerate(self.indices)})
        return torch.tensor([row_of[index] for index in indices.tolist()], dtype=torch.long)

    def some(self, max_images: int | None) -> Batch:
        """A subset in memory, on the device: for the few images that a measurement must see together."""
        return self.once(("some", max_images), lambda: self.images_at(self.rows(max_images)))

    def images_at(self, rows: Tensor) -> Batch:
        """The images at some rows of the split, on the device; read only if a pass did not keep them."""
        kept = self.kept.get("sample")
        batch = None if kept is None else kept.images(self.indices[rows])
        if batch is None:
            return whole(taken(self.images, rows), self.batch_size, self.device)
        return Batch(batch.images.to(self.device), batch.labels.to(self.device), batch.indices)

    @cached_property
    def linear(self) -> nn.Module:
        """The module whose last layer is linear: a study's own model, or what a calibrated copy was made of."""
        if self.space is not None:
            return self.space.to(self.device)
        return self.model.model if isinstance(self.model, Calibrated) else self.model

    def outputs(self, max_images: int | None) -> tuple[Outputs, Labels]:
        """Features, logits and labels of a subset, a batch of images in memory at a time."""
        return self.once(("outputs", max_images), lambda: self.read_outputs(max_images))

    def read_outputs(self, max_images: int | None) -> tuple[Outputs, Labels]:
        kept = self.kept.get("sample")
        known = None if kept is None else kept.outputs(self.indices[self.rows(max_images)])
        if known is not None:
            outputs, labels = known
            return Outputs(outputs.logits.to(self.device), outputs.features.to(self.device)), labels.to(self.device)
        features, logits, labels = [], [], []
        for batch in self.subset(max_images).batches(self.batch_size, device=self.device):
            outputs = observed_features(self.linear, batch.images, self.batch_size)
            features.append(outputs.features)
            logits.append(outputs.logits)
            labels.append(batch.labels)
        return Outputs(torch.cat(logits), torch.cat(features)), torch.cat(labels)

    def without_test(self) -> Context:
        """The same with the test split out of reach: hyper-parameters are chosen on validation."""
        hidden = Hidden()
        return replace(self, data=replace(self.data, test=hidden), images=hidden, kept={})


def pixel_names(images: Images) -> list[str]:
    """An id of each picture that has no file: a hash of its pixels."""
    pixels = (images * 255).round().to("cpu", torch.uint8).numpy()
    return [blake2b(image.tobytes(), digest_size=8).hexdigest() for image in pixels]


class Hidden:
    """A split that must not be looked at."""

    def __len__(self) -> int:
        return 0

    def batches(self, *_: object, **__: object) -> Any:
        raise SurefootError("The test split is hidden from this measurement.")
