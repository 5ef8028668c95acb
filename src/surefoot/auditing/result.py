"""What an audit found, as objects in Python and as plain values in `audit.json`."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..calibration.bins import ReliabilityBins
from ..calibration.scoring import Scores
from ..files import write_json, write_tensors
from ..models.preflight import Finding
from ..types import Estimate, Predictions

SCHEMA = 1
AUDIT, DATA = "audit.json", "audit-data"
PARTS = ("preflight", "calibration", "corruptions", "attacks", "geometry")


@dataclass(frozen=True)
class CorruptionCell:
    """A corruption at a severity."""

    name: str
    severity: int
    accuracy: Estimate
    ece: Estimate
    nll: Estimate


@dataclass(frozen=True)
class Corruptions:
    """All cells, and the mean over them."""

    mean_accuracy: Estimate
    cells: tuple[CorruptionCell, ...]

    def __getitem__(self, name: str) -> list[CorruptionCell]:
        """The severities of one corruption."""
        return [cell for cell in self.cells if cell.name == name]


@dataclass(frozen=True)
class AttackSummary:
    """How an attack fared."""

    success_rate: Estimate
    robust_accuracy: Estimate


@dataclass(frozen=True)
class Geometry:
    """What the logits look like."""

    mean_margin: Estimate


@dataclass(frozen=True)
class Audit:
    """An audit of one model on one split."""

    subject: dict[str, Any]
    calibration: Scores
    corruptions: Corruptions
    attacks: dict[str, AttackSummary]
    geometry: Geometry
    preflight: tuple[Finding, ...]
    reliability: ReliabilityBins
    predictions: Predictions

    def to_dict(self) -> dict[str, Any]:
        """Scalars only; every estimate has its value and interval."""
        parts = {name: plain(getattr(self, name)) for name in PARTS}
        return {"schema": SCHEMA, "subject": self.subject, **parts}

    def points(self) -> dict[str, Any]:
        """What figures draw."""
        bins = self.reliability
        return {
            "reliability": {
                "counts": bins.counts.tolist(),
                "confidences": bins.confidences.tolist(),
                "correct": bins.correct.tolist(),
            }
        }

    def save(self, folder: str | Path) -> Path:
        """Write `audit-data/` and then `audit.json`, which marks the audit complete."""
        folder = Path(folder)
        tensors = {"logits": self.predictions.logits, "labels": self.predictions.labels}
        if self.predictions.indices is not None:
            tensors["indices"] = self.predictions.indices
        write_tensors(folder / DATA / "predictions.safetensors", tensors)
        write_json(folder / DATA / "points.json", self.points())
        write_json(folder / AUDIT, self.to_dict())
        return folder / AUDIT


def plain(value: Any) -> Any:
    """Dataclasses and estimates as dictionaries, tuples as lists, and None for a number that is not defined."""
    if isinstance(value, Estimate):
        return {"value": plain(float(value)), "low": plain(value.low), "high": plain(value.high)}
    if isinstance(value, float) and math.isnan(value):
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
