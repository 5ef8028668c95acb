"""When the picture gets worse: accuracy and calibration under corruptions at every severity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.bins import adaptive_rms
from ..calibration.bootstrap import estimate
from ..corruptions.engine import GENERATOR, corrupt
from ..corruptions.families import ALEXNET, COMMON15, CORRUPTIONS, EVERY_FAMILY, FAMILIES, is_fair
from ..corruptions.families import NAMES as ALL
from ..corruptions.published import SEVERITIES, ArrayCopies, CopyReader, FolderCopies, corrupted
from ..errors import SurefootError, UnknownName, require
from ..intervals import Estimate
from ..types import Batch, Images
from .base import Change, Condition, Measurement, Rows, Summary, Table
from .scores import BINS, SCORES, Scored, mean_if_calibrated, mean_over, pooled_bins, score

if TYPE_CHECKING:
    from .context import Context

GENERATED = "generated"


@dataclass(frozen=True)
class Corrupted(Change):
    """A corruption at a severity, from the user's own copies where there are any; `draw` counts further draws.

    `own` are the copies of this condition, where they are not those of the context.
    """

    corruption: str
    severity: float
    draw: int = 0
    own: ArrayCopies | FolderCopies | None = None

    @property
    def name(self) -> str:
        return numbered(f"{self.corruption}/{self.severity:g}", self.draw)

    def images(self, context: Context, batch: Batch) -> Images:
        if not self.is_read(context):
            return corrupt(batch.images, self.corruption, self.severity, seed=context.seed + self.draw, indices=batch.indices)
        copies = self.own or context.copies
        assert copies is not None
        reader = context.once(("copies", copies.folder), lambda: CopyReader.of(context.images, copies))
        return reader.read(self.corruption, int(self.severity), context.rows_at(batch.indices)).to(batch.images)

    def is_read(self, context: Context) -> bool:
        """Whether the user has copies of it."""
        copies = self.own or context.copies
        return copies is not None and self.corruption in copies.names and self.severity in SEVERITIES

    def origin(self, context: Context) -> str:
        """Whether the pictures are generated or read, and from where."""
        copies = self.own or context.copies
        if copies is not None and self.is_read(context):
            return f"read from {copies.folder}"
        return f"generated with seed {context.seed}"

    def check(self, context: Context) -> None:
        if self.is_read(context) and self.severity == SEVERITIES[0]:
            corrupted(context.images, self.corruption, self.severity, copies=self.own or context.copies)


def numbered(name: str, draw: int) -> str:
    """The name of a condition and, from the second draw on, its number."""
    return f"{name}#{draw}" if draw else name


@dataclass(frozen=True)
class CorruptionCell:
    """A corruption at a severity; `origin` says whether it was generated or read from disk."""

    name: str
    severity: float
    accuracy: Estimate
    ece: Estimate
    nll: Estimate
    rms: Estimate  # calibration error
    scaled_ece: Estimate | None = None  # after temperature scaling
    origin: str = ""


@dataclass(frozen=True)
class Family:
    """Means over the corruptions of one kind."""

    accuracy: Estimate
    ece: Estimate
    nll: Estimate


@dataclass(frozen=True, kw_only=True)
class CorruptionResult:
    """All cells, and means over them.

    `mean_accuracy` (mCA) is over every corruption and severity. `mean_error` is over the fifteen of the benchmark, and
    `alexnet_mce` the same with every corruption's error divided by AlexNet's (ImageNet only). `pooled_rms` is the calibration
    error of all cells' predictions together. `relative_drop` is (clean - corrupted) / clean accuracy on the same images.
    The mean of ECE over cells of few images is large even for a calibrated model: `ece_if_calibrated` is the range that it
    would show, and `scaled_ece_if_calibrated` the same after temperature scaling.
    """

    images: int
    mean_accuracy: Estimate
    mean_ece: Estimate
    mean_nll: Estimate
    mean_rms: Estimate
    pooled_rms: float
    mean_scaled_ece: Estimate | None
    clean_accuracy: float
    relative_drop: Estimate
    mean_error: Estimate | None
    alexnet_mce: Estimate | None
    families: dict[str, Family]
    cells: tuple[CorruptionCell, ...]
    ece_if_calibrated: tuple[float, float] | None = None
    scaled_ece_if_calibrated: tuple[float, float] | None = None

    def __getitem__(self, name: str) -> list[CorruptionCell]:
        """The severities of one corruption."""
        return [cell for cell in self.cells if cell.name == name]


class Corruptions(Measurement):
    """Accuracy and calibration under every corruption at every severity, and means over them.

    Also the mean accuracy of each family and without noise and blur (macs Table 7), the accuracy drop relative to clean
    (representation-space Table 3), the mean error, which is mCE without a baseline, and RMS pooled over all cells; on ImageNet
    also the errors divided by AlexNet's and their mean, mCE. `each` adds the accuracy under every corruption to a study's
    table, `images_per_bin` the RMS error over bins of so many images: the mean over cells, and pooled.
    `generator` is the version of the corruptions: results of an earlier one can be shown but not computed again.
    `origin` names the copies that a study reads (its folder is the context's business); their names need not be ours.
    """

    part = "corruptions"

    def __init__(
        self,
        names: Sequence[str] = ALL,
        severities: Sequence[float] = (1, 2, 3, 4, 5),
        max_images: int | None = None,
        bins: int = BINS,
        each: bool = False,
        generator: int = GENERATOR,
        images_per_bin: int | None = None,
        origin: str = GENERATED,
    ) -> None:
        require(images_per_bin is None or images_per_bin >= 1, "images_per_bin", "at least 1", images_per_bin)
        require(generator == GENERATOR, "generator", f"{GENERATOR}, the corruptions of this version", generator)
        require(len(names) > 0 and len(severities) > 0, "names and severities", "at least one", (names, severities))
        for name in names if origin.startswith(GENERATED) else ():
            for link in name.split("+"):
                CORRUPTIONS.load(link)
        self.names, self.severities, self.max_images, self.bins, self.each = names, severities, max_images, bins, each
        self.images_per_bin = images_per_bin
        self.origin = origin

    def cells(self, context: Context) -> list[Corrupted]:
        copies = None
        if not self.origin.startswith(GENERATED):
            if self.origin not in context.published:
                raise SurefootError(f"The corrupted copies '{self.origin}' are not at hand: give their folder (--corrupted).")
            copies = context.published[self.origin]
            for name in self.names:
                if name not in copies.names:
                    raise UnknownName(f"corruption in '{copies.folder}'", name, copies.names)
            fitting = set(self.severities) <= set(SEVERITIES)
            require(fitting, "severities", "among 1, 2, 3, 4 and 5 for corruptions on disk", self.severities)
        return [Corrupted(name, severity, own=copies) for name in self.names for severity in self.severities]

    def conditions(self, context: Context) -> Sequence[Condition]:
        return self.cells(context)

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        cells = self.cells(context)
        rows = [table.rows(cell.name, self.max_images) for cell in cells]
        scored = score(rows, SCORES, context, self.bins)
        after = score(rows, ("ece",), context, self.bins, scaled=True) if "scaled_confidence" in rows[0] else []
        scaled: Sequence[Scored | None] = after or [None] * len(cells)
        (clean,) = score([table.clean(self.max_images)], ("accuracy",), context, self.bins)
        by_name = {name: [s for cell, s in zip(cells, scored, strict=True) if cell.corruption == name] for name in self.names}
        common = [name for name in COMMON15 if name in by_name]
        fair = is_fair(context.data.num_classes, context.data.image_size, self.severities)
        families = {}
        for family, members in EVERY_FAMILY.items():
            own = [each for name in members for each in by_name.get(name, ())]
            if own:
                families[family] = Family(*(mean_over(own, score) for score in ("accuracy", "ece", "nll")))
        value = CorruptionResult(
            images=len(rows[0]["index"]),
            mean_accuracy=mean_over(scored, "accuracy"),
            mean_ece=mean_over(scored, "ece"),
            mean_nll=mean_over(scored, "nll"),
            mean_rms=mean_over(scored, "rms"),
            pooled_rms=pooled_bins(scored).rms,
            mean_scaled_ece=mean_over(after, "ece") if after else None,
            ece_if_calibrated=mean_if_calibrated(scored, context),
            scaled_ece_if_calibrated=mean_if_calibrated(after, context) if after else None,
            clean_accuracy=clean.values["accuracy"],
            relative_drop=relative_drop(scored, clean),
            mean_error=error_over(by_name, common, None),
            alexnet_mce=error_over(by_name, common, ALEXNET) if fair else None,
            families=families,
            cells=tuple(
                CorruptionCell(
                    cell.corruption,
                    int(cell.severity) if cell.severity == int(cell.severity) else cell.severity,
                    **{name: own.estimate(name) for name in SCORES},
                    scaled_ece=None if own_after is None else own_after.estimate("ece"),
                    origin=cell.origin(context),
                )
                for cell, own, own_after in zip(cells, scored, scaled, strict=True)
            ),
        )
        return Summary(value, {"adaptive": self.adaptive(rows)})

    def adaptive(self, rows: Sequence[Rows]) -> dict[str, float]:
        """The RMS errors over bins of equally many images, if they were asked for."""
        if self.images_per_bin is None:
            return {}
        columns = [(each["confidence"], each["correct"]) for each in rows]
        pooled = [np.concatenate(column) for column in zip(*columns, strict=True)]
        mean = fmean(adaptive_rms(*column, self.images_per_bin) for column in columns)
        return {"adaptive_rms": mean, "adaptive_rms_pooled": adaptive_rms(pooled[0], pooled[1], self.images_per_bin)}

    def numbers(self, summary: Summary) -> dict[str, float]:
        result: CorruptionResult = summary.values
        out = {
            "accuracy": float(result.mean_accuracy),
            "ece": float(result.mean_ece),
            "rms": float(result.mean_rms),
            "nll": float(result.mean_nll),
        }
        out |= {} if result.mean_scaled_ece is None else {"ece_scaled": float(result.mean_scaled_ece)}
        accuracies = {name: fmean(float(cell.accuracy) for cell in result[name]) for name in self.names}
        out |= {f"accuracy.{family}": float(own.accuracy) for family, own in result.families.items()}
        easy = [accuracies[name] for family in ("weather", "digital") for name in FAMILIES[family] if name in accuracies]
        out |= {"accuracy.no_overlap": fmean(easy)} if easy else {}
        out |= {"clean_accuracy": result.clean_accuracy, "drop": float(result.relative_drop), "error": 1 - out["accuracy"]}
        if result.alexnet_mce is not None:
            relative = {name: (1 - accuracies[name]) / ALEXNET[name] for name in ALEXNET}
            out |= {"mce": float(result.alexnet_mce), **{f"ce.{name}": value for name, value in relative.items()}}
        out["rms_pooled"] = result.pooled_rms
        out |= summary.figures["adaptive"]
        return out | ({f"accuracy.{name}": value for name, value in accuracies.items()} if self.each else {})


def relative_drop(scored: Sequence[Scored], clean: Scored) -> Estimate:
    """(clean - corrupted) / clean accuracy, as representation-space Table 3 has it; not defined where nothing was right."""
    before, worse = clean.values["accuracy"], fmean(each.values["accuracy"] for each in scored)
    draws = clean.draws["accuracy"]
    moved = np.mean([each.draws["accuracy"] for each in scored], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return estimate((before - worse) / before if before else float("nan"), (draws - moved) / draws)


def error_over(by_name: dict[str, list[Scored]], names: Sequence[str], baseline: dict[str, float] | None) -> Estimate | None:
    """Mean error over the fifteen corruptions of the benchmark (mCE), each divided by a baseline's if one is given."""
    if len(names) < len(COMMON15):
        return None
    values, draws = [], []
    for name in names:
        scale = 1.0 if baseline is None else baseline[name]
        values.append((1 - fmean(each.values["accuracy"] for each in by_name[name])) / scale)
        draws.append((1 - np.mean([each.draws["accuracy"] for each in by_name[name]], axis=0)) / scale)
    return estimate(fmean(values), np.mean(draws, axis=0))
