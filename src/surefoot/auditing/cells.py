"""Scores of the answers under one condition, with the bootstrap draws, so that means over conditions have intervals too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

import torch
from torch import Tensor, nn

from ..calibration.answers import answer
from ..calibration.bins import ReliabilityBins
from ..calibration.bootstrap import DRAWS, estimate
from ..calibration.scoring import interval_of, samples
from ..calibration.temperature import divided
from ..models.prediction import predict
from ..types import Batch, Estimate, Predictions
from .records import Record

BINS = 15
SCORES = ("accuracy", "ece", "nll", "rms")
SCALED = "scaled_ece"  # ECE after temperature scaling


def cell(model: nn.Module, batches: Iterable[Batch], device: torch.device, temperatures: Tensor | None, seed: int) -> Record:
    """Answers on the images of one condition: scores, their draws, bins, and what was answered."""
    return record_of(predict(model, batches, device), temperatures, seed)


def record_of(answers: Predictions, temperatures: Tensor | None, seed: int) -> Record:
    """The scores of predictions; `temperatures` is one for each image."""
    held = answer(answers, BINS)
    points, draws = samples(answers, held, SCORES, BINS, DRAWS, seed)
    estimates = {name: interval_of(name, points[name], draws, held) for name in SCORES}
    tensors = {f"draws.{name}": draws[name].float() for name in SCORES}
    if temperatures is not None:
        scaled = divided(answers, temperatures)
        after = answer(scaled, BINS)
        found, drawn = samples(scaled, after, ["ece"], BINS, DRAWS, seed)
        estimates[SCALED] = interval_of("ece", found["ece"], drawn, after)
        tensors[f"draws.{SCALED}"] = drawn["ece"].float()
    tensors |= {f"bins.{part.name}": getattr(held.reliability, part.name) for part in fields(ReliabilityBins)}
    tensors |= {"classes": answers.classes.int(), "confidences": answers.confidences.float(), "correct": answers.correct}
    return Record(estimates, tensors)


def mean_over(records: Sequence[Record], name: str) -> Estimate:
    """The mean of a score over conditions that saw the same draws of images, with its interval."""
    points = [float(record.values[name]) for record in records]
    draws = torch.stack([record.tensors[f"draws.{name}"] for record in records]).mean(0).double()
    return estimate(sum(points) / len(points), draws)


def pooled_bins(records: Sequence[Record]) -> ReliabilityBins:
    """The bins of all conditions together."""
    parts = [ReliabilityBins(*(record.tensors[f"bins.{f.name}"] for f in fields(ReliabilityBins))) for record in records]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole
