"""What an audit found, as objects in Python and as plain values in `audit.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from ..calibration.bins import ReliabilityBins
from ..calibration.calibrators import digest_of
from ..calibration.scoring import Scores
from ..files import inside, write_json, write_tensors
from ..models.preflight import Finding
from ..plain import plain
from ..types import Estimate, Predictions

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = 2
AUDIT, DATA, DRAWS = "audit.json", "audit-data", "draws.safetensors"


@dataclass(frozen=True)
class Condition:
    """Scores under one change of the images."""

    name: str
    severity: int
    accuracy: Estimate
    ece: Estimate
    nll: Estimate
    rms: Estimate  # calibration error


@dataclass(frozen=True)
class CorruptionCell(Condition):
    """A corruption at a severity; `origin` says whether it was generated or read from disk."""

    scaled_ece: Estimate | None = None  # after temperature scaling
    origin: str = ""


@dataclass(frozen=True)
class NoiseLevel:
    """Noise of one strength in pixel units; the deviation is over draws of the noise, None for a single draw."""

    kind: str
    level: float
    draws: int
    deviation: float | None
    accuracy: Estimate
    ece: Estimate
    nll: Estimate
    rms: Estimate


@dataclass(frozen=True)
class Family:
    """Means over the corruptions of one kind."""

    accuracy: Estimate
    ece: Estimate
    nll: Estimate


@dataclass(frozen=True, kw_only=True)
class Corruptions:
    """All cells, and means over them.

    `mean_accuracy` (mCA) is over every corruption and severity. `mean_error` is over the fifteen of the benchmark, and
    `alexnet_mce` the same with every corruption's error divided by AlexNet's (ImageNet only). `pooled_rms` is the calibration
    error of all cells' answers together. `relative_drop` is (clean - corrupted) / clean accuracy on the same images.
    """

    images: int
    mean_accuracy: Estimate
    mean_ece: Estimate
    mean_nll: Estimate
    mean_rms: Estimate
    pooled_rms: float
    mean_scaled_ece: Estimate | None
    relative_drop: Estimate
    mean_error: Estimate | None
    alexnet_mce: Estimate | None
    families: dict[str, Family]
    cells: tuple[CorruptionCell, ...]

    def __getitem__(self, name: str) -> list[CorruptionCell]:
        """The severities of one corruption."""
        return [cell for cell in self.cells if cell.name == name]


@dataclass(frozen=True, kw_only=True)
class AttackSummary:
    """How an attack fared, and how sure the model was of the answers it was led to.

    `eps` is how far a pixel may change; None for an attack of one's own that does not say.
    """

    images: int
    eps: float | None
    success_rate: Estimate
    robust_accuracy: Estimate
    confidence: Estimate
    ece: Estimate
    nll: Estimate
    signed_error: Estimate


@dataclass(frozen=True)
class Geometry:
    """Why the model is robust or not: one number for each measurement, None where it was not made.

    `notes` says what a number can and cannot mean, and why one is missing.
    """

    mean_margin: Estimate
    logit_norm: Estimate | None = None
    largest_logit: Estimate | None = None
    measured: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClassResult:
    """One class: how often it is recognised, how often an answer of it is right, and what it is taken for most often."""

    name: str
    images: int
    accuracy: Estimate | None
    precision: Estimate | None
    confidence: float | None
    taken_for: str | None
    taken_for_images: int


@dataclass(frozen=True)
class GroupResult:
    """One group of images that the user named."""

    name: str
    images: int
    accuracy: Estimate
    ece: Estimate
    nll: Estimate
    signed_error: float


@dataclass(frozen=True)
class Threshold:
    """The confidence from which the model answers itself; two thresholds where each half chose for the other."""

    wanted_risk: float
    thresholds: tuple[float, ...]
    coverage: Estimate
    risk: Estimate


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
    corrupted_ece: Estimate | None = None
    corrupted_scaled_ece: Estimate | None = None


@dataclass(frozen=True, kw_only=True)
class PredictionsAudit:
    """What can be said from the predictions of a model alone."""

    PARTS: ClassVar[tuple[str, ...]] = ("calibration", "temperature", "geometry", "thresholds", "classes", "groups")
    subject: dict[str, Any]
    calibration: Scores
    temperature: TemperatureScaling | None
    geometry: Geometry
    thresholds: tuple[Threshold, ...]
    classes: tuple[ClassResult, ...]
    groups: tuple[GroupResult, ...] = ()
    reliability: ReliabilityBins
    predictions: Predictions
    figures: dict[str, Any] = field(default_factory=dict)  # what figures draw, plain

    def to_dict(self) -> dict[str, Any]:
        """Scalars only; every estimate has its value and interval."""
        parts = {name: plain(getattr(self, name)) for name in self.PARTS}
        subject = {
            **self.subject,
            "answers": digest_of(self.predictions),
        }  # so that data of another audit are not taken for its
        return {"schema": SCHEMA, "subject": subject, **parts}

    def to_dataframe(self) -> DataFrame:
        """One row for each number: its path, value and interval. Needs pandas, which is not a dependency."""
        from .frames import as_dataframe

        return as_dataframe(self.to_dict())

    def _repr_html_(self) -> str:
        """What a notebook shows: the first numbers, as a small table."""
        from .frames import as_html

        return as_html(self.to_dict())

    def points(self) -> dict[str, Any]:
        """What figures draw."""
        bins = self.reliability
        shown = {"counts": bins.counts, "confidences": bins.confidences, "correct": bins.correct}
        points: dict[str, Any] = plain({"reliability": shown, **self.figures})
        return points

    def save(self, folder: str | Path) -> Path:
        """Write `audit-data/` and then `audit.json`, which marks the audit complete."""
        folder = Path(folder)
        data = inside(folder, DATA)
        self.predictions.save(data / "predictions.safetensors")
        write_json(data / "points.json", self.points())
        write_json(folder / AUDIT, self.to_dict())
        return folder / AUDIT


@dataclass(frozen=True, kw_only=True)
class Audit(PredictionsAudit):
    """An audit of one model on one split."""

    PARTS = (
        *("preflight", "calibration", "temperature", "thresholds", "corruptions", "noise", "occlusions"),
        *("attacks", "security_curve", "masking", "geometry", "classes", "groups"),
    )
    corruptions: Corruptions
    noise: tuple[NoiseLevel, ...]
    occlusions: tuple[Condition, ...]
    attacks: dict[str, AttackSummary]
    security_curve: tuple[dict[str, Any], ...]
    draws: dict[str, Tensor]  # of its means, for comparisons: see pairing.py
    masking: tuple[str, ...]
    preflight: tuple[Finding, ...]

    def save(self, folder: str | Path) -> Path:
        """Write also the draws by which it can be compared."""
        write_tensors(inside(folder, DATA) / DRAWS, {name: values.float() for name, values in self.draws.items()})
        return super().save(folder)
