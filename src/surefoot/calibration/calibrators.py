"""What a calibrator is: fitted once, applied to logits, put on a model, saved with a run."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..errors import SurefootError, UnknownName
from ..files import read_header, read_tensors, write_tensors
from ..registry import import_target
from ..types import Images, Logits, Predictions
from .arguments import FITS, METHODS


@dataclass(frozen=True)
class FittedOn:
    """The images that a calibrator has seen: their indices in `data`, and a digest of the predictions themselves."""

    digest: str
    indices: Tensor | None = None
    data: str = ""

    @classmethod
    def of(cls, predictions: Predictions) -> FittedOn:
        return cls(digest_of(predictions), None if predictions.indices is None else predictions.indices.cpu().long())

    def overlap(self, predictions: Predictions) -> int:
        """How many of these predictions are for images that were fitted on, as far as can be told.

        By index where both know theirs; else only the very same predictions are recognised.
        """
        if self.indices is not None and predictions.indices is not None:
            return int(torch.isin(predictions.indices.cpu(), self.indices).sum())
        return len(predictions) if digest_of(predictions) == self.digest else 0


def widened(logits: Logits) -> Logits:
    """Half precision as float32: its rounding would make neighbouring classes equal, and change which comes first."""
    return logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits


def digest_of(predictions: Predictions) -> str:
    content = blake2b(digest_size=16)
    for part in (predictions.logits, predictions.labels):
        content.update(part.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return content.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Calibrator(ABC):
    """A fitted change of the logits. `note` says what the fit could not do, and is empty when all went well."""

    keeps_order: ClassVar[bool] = False  # whether the class with the highest logit stays the same, whatever the logits
    note: str = ""
    fitted_on: FittedOn

    @abstractmethod
    def apply(self, logits: Logits) -> Logits:
        """The calibrated logits, of the same type and on the same device."""

    def module(self, model: nn.Module) -> Calibrated:
        """The model with this calibrator behind it."""
        return Calibrated(model, self)

    def calibrate(self, predictions: Predictions, *, allow_leakage: bool = False) -> Predictions:
        """Calibrated predictions of images that the fit has not seen; `allow_leakage` takes those that it has."""
        seen = 0 if allow_leakage else self.fitted_on.overlap(predictions)
        if seen:
            raise SurefootError(
                f"{seen} of {len(predictions)} images were fitted on, so their scores would flatter; "
                "score others, or pass allow_leakage=True (--allow-leakage)."
            )
        return replace(predictions, logits=self.apply(widened(predictions.logits)))

    def save(self, path: str | Path) -> None:
        """Write the calibrator as safetensors, with the images it has seen."""
        tensors, plain = {}, {}
        for name, value in state_of(self).items():
            if isinstance(value, Tensor):
                tensors[name] = value
            else:
                plain[name] = value
        if self.fitted_on.indices is not None:
            tensors["indices"] = self.fitted_on.indices
        seen = {"digest": self.fitted_on.digest, "data": self.fitted_on.data}
        about = {"method": METHODS.name_of(type(self)), "state": plain, "note": self.note, "fitted_on": seen}
        tensors = tensors or {"empty": torch.zeros(1)}
        write_tensors(path, tensors, {"surefoot": json.dumps(about)})


def state_of(calibrator: Calibrator) -> dict[str, Any]:
    """What the fit found."""
    own = [field.name for field in dataclasses.fields(calibrator) if field.name not in ("note", "fitted_on")]
    return {name: getattr(calibrator, name) for name in own}


def load_calibrator(path: str | Path) -> Calibrator:
    """Read what `Calibrator.save` wrote."""
    tensors, about = read_tensors("calibration", path), read_header("calibration", path)
    if "method" not in about:
        raise SurefootError(f"'{path}' was not written by Surefoot: it names no calibration method.")
    if not isinstance(about["method"], str) or about["method"] not in METHODS:
        raise UnknownName(f"{METHODS.kind} in '{path}'", about["method"], METHODS.names)
    try:
        seen = FittedOn(indices=tensors.pop("indices", None), **about["fitted_on"])
        tensors.pop("empty", None)
        calibrator: Calibrator = METHODS.load(about["method"])(**about["state"], **tensors, note=about["note"], fitted_on=seen)
    except (KeyError, TypeError) as error:
        raise SurefootError(f"'{path}' is not a whole calibration: {error}.") from error
    return calibrator


def fit_calibrator(method: str, predictions: Predictions, model: nn.Module, data: str = "") -> Calibrator:
    """Fit the named method; `data` says into which data set the indices point. Feature scaling needs the model's last layer."""
    if method not in METHODS:
        raise UnknownName(METHODS.kind, method, METHODS.names)
    given: tuple[Any, ...] = (predictions,)
    if method == "feature-scaling":
        head = getattr(model, "head", None)
        if not isinstance(head, nn.Linear):
            raise SurefootError(
                "The method 'feature-scaling' needs a model that ends in one linear layer; 'temperature' does not."
            )
        given = (predictions, head)
    calibrator: Calibrator = import_target(METHODS.kind, FITS[method])(*given)
    return replace(calibrator, fitted_on=replace(calibrator.fitted_on, data=data))


class Calibrated(nn.Module):
    """A model with a calibrator behind it: pixels in, calibrated logits out."""

    def __init__(self, model: nn.Module, calibrator: Calibrator) -> None:
        super().__init__()
        self.model, self.calibrator, self.training = model, calibrator, model.training

    @property
    def source(self) -> dict[str, Any] | None:
        """How the model was built, where that is known."""
        source: dict[str, Any] | None = getattr(self.model, "source", None)
        return source

    @property
    def repair(self) -> Calibrator:
        """The former name of `calibrator`, for one release."""
        return self.calibrator

    def forward(self, images: Images) -> Logits:
        return self.calibrator.apply(self.model(images))


Repair = Calibrator  # the former names, for one release
load_repair = load_calibrator
