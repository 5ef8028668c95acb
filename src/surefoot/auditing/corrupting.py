"""When the picture gets worse: every corruption at every severity, noise levels, and the papers' occlusions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..calibration.bootstrap import estimate
from ..corruptions.alexnet import ALEXNET, is_fair
from ..corruptions.engine import corrupt
from ..corruptions.families import COMMON15, EVERY_FAMILY
from ..corruptions.levels import add_gaussian_noise, add_uniform_noise
from ..corruptions.published import corrupted
from ..models.prediction import transformed
from ..types import Batch, Estimate, Images
from .cells import SCALED, SCORES, cell, mean_over, pooled_bins
from .records import Record, Workbook
from .result import Condition, CorruptionCell, Corruptions, Family, NoiseLevel
from .setting import Setting
from .steps import Step

Change = Callable[[Batch], Images]
MIDDLE = 3  # severity of the occlusions


def corruption_steps(setting: Setting, temperatures: Tensor | None) -> list[Step]:
    """One step for each corruption at each severity, scored before and after the temperature of each image."""
    images = setting.corruption_images
    steps = []
    for name in setting.depth.corruptions:
        for severity in setting.depth.severities:
            if setting.copies is not None and severity == setting.depth.severities[0]:  # other images are refused at once
                corrupted(images, name, severity, seed=setting.seed, copies=setting.copies)
            work = partial(corrupted_cell, setting, name, severity, temperatures)
            cost = setting.cost(len(images), corruption=name)
            steps.append(Step(corruption_name(name, severity), work, cost))
    return steps


def corruption_name(name: str, severity: int) -> str:
    return f"corruptions/{name}/{severity}"


def corrupted_cell(setting: Setting, name: str, severity: int, temperatures: Tensor | None) -> Record:
    seen = corrupted(setting.corruption_images, name, severity, seed=setting.seed, copies=setting.copies)
    batches = seen.batches(setting.batch_size, device=setting.device)
    found = cell(setting.model, batches, setting.device, temperatures, setting.seed)
    return Record({**found.values, "origin": seen.origin}, found.tensors)


def noise_steps(setting: Setting) -> list[Step]:
    """Every level of noise, drawn as often as the depth says."""
    return [
        condition_step(setting, noise_name(kind, level, draw), partial(noisy, kind, level, setting.seed + draw))
        for kind, level in noise_levels(setting)
        for draw in range(setting.depth.noise_draws)
    ]


def noise_levels(setting: Setting) -> list[tuple[str, float]]:
    depth = setting.depth
    return [("gaussian", level) for level in depth.gaussian_levels] + [("uniform", level) for level in depth.uniform_levels]


def noise_name(kind: str, level: float, draw: int) -> str:
    return f"noise/{kind}/{level:.6f}/{draw}"


def noisy(kind: str, level: float, seed: int, batch: Batch) -> Images:
    add = add_gaussian_noise if kind == "gaussian" else add_uniform_noise
    return add(batch.images, level, seed=seed, indices=batch.indices)


def occlusion_steps(setting: Setting) -> list[Step]:
    """The occlusions of discriminative-noise Table 4 at the middle severity."""
    return [
        condition_step(setting, f"occlusions/{name}", partial(occluded, name, setting.seed))
        for name in setting.depth.occlusions
    ]


def occluded(name: str, seed: int, batch: Batch) -> Images:
    return corrupt(batch.images, name, MIDDLE, seed=seed, indices=batch.indices)


def condition_step(setting: Setting, name: str, change: Change) -> Step:
    """A step that scores the answers on changed images."""

    def work() -> Record:
        batches = setting.corruption_images.batches(setting.batch_size, device=setting.device)
        return cell(setting.model, transformed(batches, change), setting.device, None, setting.seed)

    return Step(name, work, setting.cost(len(setting.corruption_images)))


def summarise_corruptions(setting: Setting, book: Workbook, clean: Record) -> Corruptions:
    """The cells, and means over all, over families and over the benchmark's fifteen; `clean` is of the same images."""
    depth, records = setting.depth, dict[tuple[str, int], Record]()
    for name in depth.corruptions:
        for severity in depth.severities:
            found = book.read(corruption_name(name, severity))
            assert found is not None
            records[name, severity] = found
    cells = tuple(
        CorruptionCell(name, severity, **cell_scores(record), origin=record.values["origin"])
        for (name, severity), record in records.items()
    )
    families = {}
    for family, names in EVERY_FAMILY.items():
        own = [record for (name, _), record in records.items() if name in names]
        if own:
            families[family] = Family(mean_over(own, "accuracy"), mean_over(own, "ece"), mean_over(own, "nll"))
    whole = list(records.values())
    common = [name for name in COMMON15 if name in depth.corruptions]
    fair = is_fair(setting.data.num_classes, setting.data.image_size, depth.severities)
    scaled = mean_over(whole, SCALED) if SCALED in whole[0].values else None
    return Corruptions(
        images=len(setting.corruption_images),
        mean_accuracy=mean_over(whole, "accuracy"),
        mean_ece=mean_over(whole, "ece"),
        mean_nll=mean_over(whole, "nll"),
        mean_rms=mean_over(whole, "rms"),
        pooled_rms=pooled_bins(whole).rms,
        mean_scaled_ece=scaled,
        relative_drop=relative_drop(whole, clean),
        mean_error=error_over(records, common, None),
        alexnet_mce=error_over(records, common, ALEXNET) if fair else None,
        families=families,
        cells=cells,
    )


def cell_scores(record: Record) -> dict[str, Any]:
    return {score: record.values.get(score) for score in (*SCORES, SCALED)}


def relative_drop(records: Sequence[Record], clean: Record) -> Estimate:
    """(clean - corrupted) / clean accuracy, as representation-space Table 3 has it."""
    before = float(clean.values["accuracy"])
    draws = clean.tensors["draws.accuracy"].double()
    worse = torch.stack([record.tensors["draws.accuracy"] for record in records]).mean(0).double()
    mean = sum(float(record.values["accuracy"]) for record in records) / len(records)
    return estimate((before - mean) / before if before else float("nan"), (draws - worse) / draws)


def error_over(
    records: dict[tuple[str, int], Record], names: Sequence[str], baseline: dict[str, float] | None
) -> Estimate | None:
    """Mean error over the fifteen corruptions of the benchmark (mCE), each divided by a baseline's if one is given."""
    if len(names) < len(COMMON15):
        return None
    points, draws = [], []
    for name in names:
        own = [record for (other, _), record in records.items() if other == name]
        scale = 1.0 if baseline is None else baseline[name]
        points.append((1 - mean_over(own, "accuracy")) / scale)
        draws.append((1 - torch.stack([record.tensors["draws.accuracy"] for record in own]).mean(0).double()) / scale)
    return estimate(sum(points) / len(points), torch.stack(draws).mean(0))


def summarise_noise(setting: Setting, book: Workbook) -> tuple[NoiseLevel, ...]:
    """Mean over the draws of every level, and the deviation over them."""
    found = []
    for kind, level in noise_levels(setting):
        records = [book.read(noise_name(kind, level, draw)) for draw in range(setting.depth.noise_draws)]
        drawn = [record for record in records if record is not None]
        spread = torch.tensor([float(record.values["accuracy"]) for record in drawn])
        deviation = float(spread.std()) if len(drawn) > 1 else None
        scores = {name: mean_over(drawn, name) for name in SCORES}
        found.append(NoiseLevel(kind, level, len(drawn), deviation, **scores))
    return tuple(found)


def summarise_occlusions(setting: Setting, book: Workbook) -> tuple[Condition, ...]:
    found = []
    for name in setting.depth.occlusions:
        record = book.read(f"occlusions/{name}")
        assert record is not None
        found.append(Condition(name, MIDDLE, **{score: record.values[score] for score in SCORES}))
    return tuple(found)
