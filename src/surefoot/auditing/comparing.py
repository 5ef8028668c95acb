"""Audits side by side: differences with intervals, paired where both models saw the same images, and which of them are real."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..calibration.answers import answer
from ..calibration.bootstrap import DRAWS, estimate
from ..calibration.scoring import samples
from ..corruptions.families import COMMON15
from ..errors import SurefootError
from ..intervals import NORMAL_95
from ..plain import plain
from ..types import Estimate
from .aligning import Compared, align, name_apart, read_compared
from .cells import BINS
from .conditions import conditions
from .naming import Number, good_direction, numbers_in

LEVEL = 0.05
CLEAN = ("accuracy", "nll", "brier", "ece", "adaptive_ece", "rms", "aurc", "auroc")  # paired on the images themselves
OTHERS = (  # paired where the audits kept their draws
    *("temperature.calibration.ece", "corruptions.mean_accuracy", "corruptions.mean_ece", "corruptions.mean_nll"),
    *("corruptions.mean_rms", "corruptions.mean_scaled_ece"),
)
MCE = "corruptions.relative_mce"


@dataclass(frozen=True)
class Difference:
    """`second` minus `first` in one number.

    `real` is whether the interval leaves out 0 and the difference stands after Holm's correction for all that were looked at.
    `better` is 1 where the second is better, -1 where it is worse. An unpaired interval is the widest that both allow.
    """

    name: str
    first: str
    second: str
    value: float
    low: float
    high: float
    paired: bool
    better: int
    real: bool = False

    @property
    def probability(self) -> float:
        """Of a difference at least as large between equal models, for a normal distribution as wide as the interval."""
        width = (self.high - self.low) / (2 * NORMAL_95)
        if width == 0:
            return 1.0 if self.value == 0 else 0.0
        return math.erfc(abs(self.value) / width / math.sqrt(2))


@dataclass(frozen=True)
class Comparison:
    """Models by name, the value of every number for each of them, the differences, and what to know about them."""

    models: list[str]
    values: dict[str, dict[str, float]]
    differences: list[Difference]
    notes: list[str]

    def for_page(self) -> list[dict[str, Any]]:
        """The paired differences, plain: the page says that both models were judged on the same images."""
        return [plain(vars(item)) for item in self.differences if item.paired]


def compare(audits: Sequence[Compared | str | Path], *, all_pairs: bool = False, seed: int = 0) -> Comparison:
    """Audits, or the folders that hold them: every one against the first, or every pair.

    Clean scores are paired on the images, the rest by the draws of the audits where both kept them on the same images.
    """
    if len(audits) < 2:
        raise SurefootError("A comparison needs at least two audits.")
    read = [audit if isinstance(audit, Compared) else read_compared(audit) for audit in audits]
    models, notes = align(name_apart(read))
    numbers = [numbers_in(model.audit) for model in models]
    clean = [clean_samples(model, seed) for model in models]
    found: list[Difference] = []
    pairs = combinations(range(len(models)), 2) if all_pairs else ((0, place) for place in range(1, len(models)))
    for one, two in pairs:
        named = (models[one].name, models[two].name)
        alike = same_damage(models[one], models[two])
        if not alike and "corruptions" in models[one].audit and "corruptions" in models[two].audit:
            notes.append(f"'{named[0]}' and '{named[1]}' saw other corruptions: what they did under these is not compared.")
        found += clean_differences(named, clean[one], clean[two], numbers[one], numbers[two])
        paired = can_pair(models[one], models[two])
        for name in other_names(numbers[one], numbers[two], models[one], alike):
            first, second = numbers[one][name], numbers[two][name]
            draws = [models[place].draws.get(name) for place in (one, two)] if paired else [None, None]
            found.append(difference_of(name, named, first, second, draws))
        if alike:
            found += relative_mce(named, models[one], models[two], paired)
    values: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(item.name for item in found):
        for model, held, own in zip(models, numbers, clean, strict=True):
            score = name.removeprefix("calibration.")
            if own is not None and score in own[0]:
                values.setdefault(name, {})[model.name] = own[0][score]
            elif name in held:
                values.setdefault(name, {})[model.name] = held[name].value
    return Comparison([model.name for model in models], values, with_real(found), notes)


def clean_samples(model: Compared, seed: int) -> tuple[dict[str, float], dict[str, Tensor]] | None:
    if model.predictions is None:
        return None
    return samples(model.predictions, answer(model.predictions, BINS), CLEAN, BINS, DRAWS, seed)


def clean_differences(
    named: tuple[str, str],
    one: tuple[dict[str, float], dict[str, Tensor]] | None,
    two: tuple[dict[str, float], dict[str, Tensor]] | None,
    first: Mapping[str, Number],
    second: Mapping[str, Number],
) -> Iterator[Difference]:
    """On the images themselves, or from the audits' numbers where there are no answers."""
    for score in CLEAN:
        name = f"calibration.{score}"
        if one is not None and two is not None:
            value = estimate(two[0][score] - one[0][score], two[1][score] - one[1][score])
            if math.isfinite(value):
                yield as_difference(name, named, value, paired=True)
        elif name in first and name in second:
            yield difference_of(name, named, first[name], second[name], [None, None])


def same_damage(one: Compared, two: Compared) -> bool:
    """Whether both met the same corruptions of as many images: at the same depth, from the same place."""
    depths = [model.audit["subject"].get("depth") for model in (one, two)]
    return depths[0] == depths[1] and conditions(one.audit) == conditions(two.audit)


def other_names(first: Mapping[str, Number], second: Mapping[str, Number], one: Compared, alike: bool) -> list[str]:
    """What both have beyond the clean scores; what they did under corruptions only where those are alike."""
    attacks = [
        f"attacks.{name}.{score}" for name in one.audit.get("attacks", {}) for score in ("success_rate", "robust_accuracy")
    ]
    wanted = [name for name in OTHERS if alike or not name.startswith("corruptions")] + attacks
    return [name for name in wanted if name in first and name in second]


def can_pair(one: Compared, two: Compared) -> bool:
    """Whether the draws of both audits are of the same images: the same seed, and as many of the same split.

    An attack that only one of them has does not matter.
    """
    first, second = ({name: found["images"] for name, found in m.audit.get("attacks", {}).items()} for m in (one, two))
    if any(first[name] != second[name] for name in first.keys() & second.keys()):
        return False
    sides = [(m.audit["subject"].get("seed"), m.audit.get("corruptions", {}).get("images")) for m in (one, two)]
    return bool(one.draws) and bool(two.draws) and sides[0] == sides[1]


def difference_of(
    name: str, named: tuple[str, str], first: Number, second: Number, draws: Sequence[Tensor | None]
) -> Difference:
    """Paired by draws, or else the widest interval that both allow: right whatever the two have in common."""
    value = second.value - first.value
    before, after = draws
    if before is not None and after is not None and len(before) == len(after):
        return as_difference(name, named, estimate(value, after - before), paired=True)
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return as_difference(name, named, Estimate(value, -math.inf, math.inf), paired=False)
    return as_difference(name, named, Estimate(value, second.low - first.high, second.high - first.low), paired=False)


def as_difference(name: str, named: tuple[str, str], value: Estimate, *, paired: bool) -> Difference:
    better = good_direction(name) * ((value > 0) - (value < 0))
    return Difference(name, *named, float(value), value.low, value.high, paired, better)


def relative_mce(named: tuple[str, str], one: Compared, two: Compared, paired: bool) -> Iterator[Difference]:
    """mCE of the second relative to the first, minus 1: the mean over corruptions of their ratio of errors.

    As Hendrycks and Dietterich (2019) divide by AlexNet's errors: each corruption's error is the mean over severities. Over the
    fifteen of the benchmark, or what both have of them; a corruption without any error of the first is left out.
    """
    first, second = errors_by_corruption(one.audit), errors_by_corruption(two.audit)
    names = [name for name in COMMON15 if name in first and first[name] > 0 and name in second]
    if not names:
        return
    value = sum(second[name] / first[name] for name in names) / len(names) - 1
    keys = [f"corruptions.{name}.accuracy" for name in names]
    paired = paired and all(key in one.draws and key in two.draws for key in keys)
    if paired:
        before, after = (1 - torch.stack([model.draws[key] for key in keys]) for model in (one, two))
        found = estimate(value, (after / before.where(before > 0, torch.nan)).nanmean(0) - 1)
    else:
        low = sum(second[name].low / first[name].high for name in names) / len(names) - 1
        ends = [second[name].high / first[name].low if first[name].low > 0 else math.inf for name in names]
        found = Estimate(value, low, sum(ends) / len(names) - 1)
    yield Difference(MCE, *named, value, found.low, found.high, paired, (value < 0) - (value > 0))


def errors_by_corruption(audit: Mapping[str, Any]) -> dict[str, Estimate]:
    """The mean error over severities of every corruption; its ends are the means of theirs."""
    held: dict[str, list[dict[str, float]]] = defaultdict(list)
    for cell in audit.get("corruptions", {}).get("cells", ()):
        held[cell["name"]].append(cell["accuracy"])
    ends = ("value", "high", "low")  # of an accuracy: its upper end is the lower one of the error
    return {
        name: Estimate(*(1 - sum(cell[end] for cell in cells) / len(cells) for end in ends)) for name, cells in held.items()
    }


def with_real(found: Sequence[Difference]) -> list[Difference]:
    """Which differences are real: the interval leaves out 0, and so does Holm's step-down test over all of them (Holm 1979)."""
    order = sorted(range(len(found)), key=lambda place: found[place].probability)
    real: set[int] = set()
    for rank, place in enumerate(order):
        if found[place].probability > LEVEL / (len(found) - rank):
            break
        real.add(place)
    return [replace(item, real=place in real and not item.low <= 0 <= item.high) for place, item in enumerate(found)]
