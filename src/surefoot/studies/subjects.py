"""What a measurement looks at: a trained model, its data, and the answers that several measurements share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn

from ..data.choosing import choose
from ..data.dataset import Dataset, Split, joined
from ..errors import SurefootError
from ..models.classifier import Classifier
from ..models.prediction import predict
from ..objectives.base import Objective
from ..seeds import global_seed
from ..training.recipes import Recipe
from ..types import Batch, Images, Labels, Predictions

SAMPLE_SEED = 0  # every cell sees the same test images, so that differences are paired


@dataclass(frozen=True)
class Subject:
    """A model with its data; what is asked for twice is computed once."""

    recipe: Recipe
    model: Classifier
    objective: Objective
    predictor: nn.Module
    data: Dataset
    device: torch.device
    work: Path | None = None  # where other runs of the study are
    data_label: str = ""
    batch_size: int = 256

    @cached_property
    def clean(self) -> Predictions:
        """Answers on the whole test split."""
        return self.answers(self.data.test)

    @cached_property
    def calibration(self) -> Predictions:
        return self.answers(self.data.calibration)

    def answers(self, split: Split) -> Predictions:
        if len(split) == 0:
            raise SurefootError("The split has no images to measure on.")
        return self.predict(split.batches(self.batch_size))

    def predict(self, batches: Iterator[Batch]) -> Predictions:
        """Answers in evaluation mode, with seeded draws if the predictor draws any."""
        with global_seed(SAMPLE_SEED, "answers"):
            return predict(self.predictor.to(self.device), batches, self.device)

    def batches(self, max_images: int | None) -> Iterator[Batch]:
        """Test images, all or a stratified number, batch by batch, in the order of the split."""
        yield from choose(self.data.test, max_images, SAMPLE_SEED).batches(self.batch_size)

    def images(self, max_images: int | None) -> tuple[Images, Labels, Tensor]:
        """The same as one tensor on the device: images, labels, places in the data set."""
        found = joined(self.batches(max_images))
        return found.images.to(self.device), found.labels.to(self.device), found.indices

    def without_test(self) -> Subject:
        """The same subject with the test split out of reach."""
        return replace(self, data=replace(self.data, test=Hidden()))


class Hidden:
    """A split that must not be looked at: hyper-parameters are chosen on validation."""

    def __len__(self) -> int:
        return 0

    def batches(self, *_: object, **__: object) -> Iterator[Batch]:
        raise SurefootError("The test split is hidden from this measurement.")
