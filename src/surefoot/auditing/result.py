"""What an audit found, as objects in Python and as plain values in `audit.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..calibration.bins import ReliabilityBins
from ..calibration.recognition import Recognition
from ..calibration.scoring import Scores
from ..errors import SurefootError
from ..files import inside, write_json
from ..intervals import Estimate
from ..measurements.attacks import AttackSummary
from ..measurements.corruptions import CorruptionResult
from ..measurements.groups import ClassResult, GroupResult
from ..measurements.noise import NoiseLevel, OcclusionResult
from ..measurements.temperatures import TemperatureScaling
from ..measurements.thresholds import Threshold
from ..models.preflight import Finding
from ..plain import plain
from ..types import Predictions
from .arguments import AUDIT
from .migration import SCHEMA

if TYPE_CHECKING:
    from pandas import DataFrame

DATA = "audit-data"


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


@dataclass(frozen=True, kw_only=True)
class PredictionsAudit:
    """What can be said from the predictions of a model alone."""

    PARTS: ClassVar[tuple[str, ...]] = (
        *("preflight", "calibration", "recognition", "temperature", "geometry", "thresholds", "classes", "groups"),
    )
    subject: dict[str, Any]
    calibration: Scores
    recognition: Recognition | None = None  # None where an earlier version audited
    temperature: TemperatureScaling | None
    geometry: Geometry
    thresholds: tuple[Threshold, ...]
    classes: tuple[ClassResult, ...]
    groups: tuple[GroupResult, ...] = ()
    reliability: ReliabilityBins
    predictions: Predictions
    preflight: tuple[Finding, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)  # what figures draw, plain

    def to_dict(self) -> dict[str, Any]:
        """Scalars only; every estimate has its value and interval."""
        parts = {name: plain(getattr(self, name)) for name in self.PARTS}
        return {"schema": SCHEMA, "subject": self.subject, **parts}

    def to_dataframe(self) -> DataFrame:
        """One row for each number: its path, value and interval."""
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
        write_json(data / "points.json", self.points())
        write_json(folder / AUDIT, self.to_dict())
        return folder / AUDIT


@dataclass(frozen=True, kw_only=True)
class Audit(PredictionsAudit):
    """An audit of one model on one split.

    `measurements` has the numbers of measurements that are not the audit's own, by their label. A part that was not measured
    is None or empty.
    """

    PARTS = (
        *("preflight", "calibration", "recognition", "temperature", "thresholds", "corruptions", "noise", "occlusions"),
        *("attacks", "security_curve", "masking", "foreign", "promises", "geometry", "classes", "groups", "measurements"),
    )
    corruptions: CorruptionResult | None = None
    noise: tuple[NoiseLevel, ...] = ()
    occlusions: tuple[OcclusionResult, ...] = ()
    attacks: dict[str, AttackSummary] = field(default_factory=dict)
    security_curve: tuple[dict[str, Any], ...] = ()
    masking: tuple[str, ...] = ()
    foreign: dict[str, Any] = field(default_factory=dict)
    promises: dict[str, Any] = field(default_factory=dict)
    measurements: dict[str, Any] = field(default_factory=dict)
    rows: Any = field(default=None, repr=False, compare=False)  # the table, where no folder holds it

    def table(self, condition: str | None = None) -> DataFrame:
        """The rows behind every number, one for each image and condition, as a pandas data frame."""
        from .table import read_table

        if self.rows is None:
            raise SurefootError("This audit kept no table.")
        return read_table(self.rows, condition) if isinstance(self.rows, Path) else self.rows(condition)
