"""What an audit found, as objects in Python and as plain values in `audit.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..calibration.bins import ReliabilityBins
from ..calibration.scoring import Scores
from ..files import write_json
from ..models.preflight import Finding
from ..plain import plain
from ..types import Estimate, Predictions

SCHEMA = 1
AUDIT, DATA = "audit.json", "audit-data"


@dataclass(frozen=True)
class CorruptionCell:
    """A corruption at a severity."""

    name: str
    severity: int
    accuracy: Estimate
    ece: Estimate
    nll: Estimate
    scaled_ece: Estimate | None = None  # after temperature scaling


@dataclass(frozen=True)
class Corruptions:
    """All cells, and the mean over them."""

    mean_accuracy: Estimate
    cells: tuple[CorruptionCell, ...]

    @property
    def mean_ece(self) -> float:
        return sum(cell.ece for cell in self.cells) / len(self.cells)

    @property
    def mean_scaled_ece(self) -> float | None:
        """After the temperature of clean images, which need not suit corrupted ones."""
        scaled = [cell.scaled_ece for cell in self.cells if cell.scaled_ece is not None]
        return sum(scaled) / len(scaled) if scaled else None

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
class TemperatureScaling:
    """What temperature scaling would do: every image is scored by a temperature that did not see it.

    `fitted_on` says where the temperatures come from; there are two in cross-fitting. Corrupted ECE is the mean over all
    corruptions, None where none was measured.
    """

    fitted_on: str
    images: int
    temperatures: tuple[float, ...]
    notes: tuple[str, ...]
    calibration: Scores
    corrupted_ece: float | None = None
    corrupted_scaled_ece: float | None = None


@dataclass(frozen=True, kw_only=True)
class PredictionsAudit:
    """What can be said from the predictions of a model alone."""

    PARTS: ClassVar[tuple[str, ...]] = ("calibration", "temperature", "geometry")
    subject: dict[str, Any]
    calibration: Scores
    temperature: TemperatureScaling | None
    geometry: Geometry
    reliability: ReliabilityBins
    predictions: Predictions

    def to_dict(self) -> dict[str, Any]:
        """Scalars only; every estimate has its value and interval."""
        parts = {name: plain(getattr(self, name)) for name in self.PARTS}
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
        self.predictions.save(folder / DATA / "predictions.safetensors")
        write_json(folder / DATA / "points.json", self.points())
        write_json(folder / AUDIT, self.to_dict())
        return folder / AUDIT


@dataclass(frozen=True, kw_only=True)
class Audit(PredictionsAudit):
    """An audit of one model on one split."""

    PARTS = ("preflight", "calibration", "temperature", "corruptions", "attacks", "geometry")
    corruptions: Corruptions
    attacks: dict[str, AttackSummary]
    preflight: tuple[Finding, ...]
