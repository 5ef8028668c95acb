"""What an attack did to a model."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from torch import Tensor

from ..calibration.bins import ReliabilityBins, reliability
from ..types import Predictions


@dataclass(frozen=True)
class AttackResult:
    """Per-image outcome of an attack; the rates follow from it.

    `parts` names the attacks of an ensemble in their order, `broken_by` says for each image which of them broke it (-1: none),
    and `finished` which images were broken or withstood all of them; None stands for all.
    """

    clean: Predictions
    attacked: Predictions
    _: KW_ONLY
    parts: tuple[str, ...] = ()
    broken_by: Tensor | None = None
    finished: Tensor | None = None

    @property
    def broken(self) -> Tensor:
        """Which images were right before and are wrong now."""
        return self.clean.correct & ~self.attacked.correct

    @property
    def success_rate(self) -> float:
        """Share of the images that were classified correctly before and are not now; 0 if none was."""
        right = int(self.clean.correct.sum())
        return int(self.broken.sum()) / right if right else 0.0

    @property
    def robust_accuracy(self) -> float:
        """Share of all images that are right before and under attack; an upper bound where an attack was not finished."""
        return float((self.clean.correct & self.attacked.correct).float().mean())

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which robust accuracy under the whole attack lies: equal unless time ran out."""
        standing = self.clean.correct & self.attacked.correct
        proven = standing if self.finished is None else standing & self.finished
        return float(proven.float().mean()), float(standing.float().mean())

    @property
    def confidence(self) -> float:
        """Mean confidence under attack, in whatever class is predicted."""
        return float(self.attacked.confidences.mean())

    @property
    def calibration(self) -> ReliabilityBins:
        """Confidence against accuracy under attack: its `ece` and `signed_error`, and the bins of the diagram."""
        return reliability(self.attacked)

    @property
    def share_of_parts(self) -> dict[str, int]:
        """How many images each part of an ensemble broke; a part sees only what the ones before it left."""
        if self.broken_by is None:
            return {}
        return {name: int((self.broken_by == place).sum()) for place, name in enumerate(self.parts)}
