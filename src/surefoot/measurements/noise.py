"""Noise at levels of one's own, and the occlusions of discriminative-noise: means and deviations over draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..corruptions.noise import add_gaussian_noise, add_uniform_noise
from ..errors import UnknownName, require
from ..intervals import Estimate
from ..types import Batch, Images
from .base import Change, Condition, Measurement, Summary, Table
from .corruptions import Corrupted, numbered
from .scores import SCORES, mean_over, score

if TYPE_CHECKING:
    from .context import Context

NOISES = {"gaussian": add_gaussian_noise, "uniform": add_uniform_noise}
OCCLUSIONS = {  # discriminative-noise Table 4: the corruptions of each, and whether noise comes on top
    "occlusion": ("occlusion", False),
    "occlusion+noise": ("occlusion", True),
    "down_up": ("down_up_sampling", False),
    "down_up+occlusion": ("down_up_sampling+occlusion", False),
    "stripes": ("stripes", False),
    "down_up+stripes": ("down_up_sampling+stripes", False),
}
NOISE_FIRST = "noise+occlusion"  # noise and then occlusion, as the authors' code has it


@dataclass(frozen=True)
class Noisy(Change):
    """Gaussian or uniform noise of a level in units of 1/255; `draw` counts its draws."""

    kind: str
    level: float
    draw: int = 0

    @property
    def name(self) -> str:
        return numbered(f"noise-{self.kind}/{self.level:g}", self.draw)

    def images(self, context: Context, batch: Batch) -> Images:
        return NOISES[self.kind](batch.images, self.level / 255, seed=context.seed + self.draw, indices=batch.indices)


@dataclass(frozen=True)
class Occluded(Change):
    """One of the occlusions, with noise on top or beneath where its name says so."""

    kind: str
    severity: float
    noise: float
    draw: int = 0

    @property
    def name(self) -> str:
        return numbered(f"{self.kind}/{self.severity:g}", self.draw)

    def images(self, context: Context, batch: Batch) -> Images:
        noise = Noisy("gaussian", self.noise, self.draw)
        if self.kind == NOISE_FIRST:
            under = Batch(noise.images(context, batch), batch.labels, batch.indices)
            return Corrupted("occlusion", self.severity, self.draw).images(context, under)
        chain, noisy = OCCLUSIONS[self.kind]
        changed = Corrupted(chain, self.severity, self.draw).images(context, batch)
        return noise.images(context, Batch(changed, batch.labels, batch.indices)) if noisy else changed


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
    clean_accuracy: Estimate | None = None  # of the same images


class Noise(Measurement):
    """Accuracy at noise levels in units of 1/255, the mean over draws, and its deviation (discriminative-noise Tables 1-3)."""

    part = "noise"

    def __init__(
        self,
        levels: Sequence[float] = (2, 4, 8, 16, 20),
        distribution: str = "gaussian",
        draws: int = 10,
        max_images: int | None = None,
    ) -> None:
        if distribution not in NOISES:
            raise UnknownName("distribution", distribution, NOISES)
        require(draws >= 1, "draws", "at least 1", draws)
        self.levels, self.distribution, self.draws, self.max_images = levels, distribution, draws, max_images

    def conditions(self, context: Context) -> Sequence[Condition]:
        return [Noisy(self.distribution, level, draw) for level in self.levels for draw in range(self.draws)]

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        levels = []
        (clean,) = score([table.clean(self.max_images)], ("accuracy",), context)
        for level in self.levels:
            rows = [table.rows(Noisy(self.distribution, level, draw).name, self.max_images) for draw in range(self.draws)]
            scored = score(rows, SCORES, context)
            spread = np.array([each.values["accuracy"] for each in scored])
            deviation = float(spread.std(ddof=1)) if self.draws > 1 else None
            means = {name: mean_over(scored, name) for name in SCORES} | {"clean_accuracy": clean.estimate("accuracy")}
            levels.append(NoiseLevel(self.distribution, float(f"{level / 255:.16g}"), self.draws, deviation, **means))
        return Summary(tuple(levels), {"clean": clean.values["accuracy"]})

    def numbers(self, summary: Summary) -> dict[str, float]:
        out = {"accuracy.0": summary.figures["clean"]}
        for level, scores in zip(self.levels, summary.values, strict=True):
            out |= {f"accuracy.{level:g}": float(scores.accuracy), f"draws.{level:g}": scores.deviation or 0.0}
        return out


@dataclass(frozen=True)
class OcclusionResult:
    """Scores under one of the occlusions, the mean over draws."""

    name: str
    severity: float
    accuracy: Estimate
    ece: Estimate
    nll: Estimate
    rms: Estimate


class Occlusions(Measurement):
    """The perturbations of discriminative-noise Table 4, the mean and deviation over draws; noise in units of 1/255.

    `kinds` are the six of the table unless given; "noise+occlusion" is one more: the noise beneath, as the authors have it.
    """

    part = "occlusions"

    def __init__(
        self,
        noise: float = 40,
        severity: float = 4,
        draws: int = 10,
        max_images: int | None = None,
        kinds: Sequence[str] = tuple(OCCLUSIONS),
    ) -> None:
        require(draws >= 1, "draws", "at least 1", draws)
        require(len(kinds) > 0, "kinds", "at least one", kinds)
        for kind in kinds:
            if kind not in (*OCCLUSIONS, NOISE_FIRST):
                raise UnknownName("occlusion", kind, (*OCCLUSIONS, NOISE_FIRST))
        self.noise, self.severity, self.draws, self.max_images = noise, severity, draws, max_images
        self.kinds = tuple(dict.fromkeys(kinds))

    def draws_of(self, kind: str) -> list[Occluded]:
        drawn = 1 if kind == "down_up" else self.draws  # nothing is drawn there
        return [Occluded(kind, self.severity, self.noise, draw) for draw in range(drawn)]

    def conditions(self, context: Context) -> Sequence[Condition]:
        return [condition for kind in self.kinds for condition in self.draws_of(kind)]

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        results, deviations = [], dict[str, float]()
        for kind in self.kinds:
            scored = score([table.rows(condition.name, self.max_images) for condition in self.draws_of(kind)], SCORES, context)
            results.append(OcclusionResult(kind, self.severity, **{name: mean_over(scored, name) for name in SCORES}))
            accuracies = np.array([each.values["accuracy"] for each in scored])
            deviations[kind] = float(accuracies.std(ddof=1)) if len(accuracies) > 1 else 0.0
        return Summary(tuple(results), {"draws": deviations})

    def numbers(self, summary: Summary) -> dict[str, float]:
        accuracies = {f"accuracy.{each.name}": float(each.accuracy) for each in summary.values}
        return accuracies | {f"draws.{kind}": deviation for kind, deviation in summary.figures["draws"].items()}
