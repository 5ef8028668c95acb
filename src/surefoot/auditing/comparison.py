"""Audits side by side: differences with intervals, paired on the images that both tables have, and which of them are real.

Reads `audit.json` and the tables, and nothing else: no images, no torch.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from ..calibration.bootstrap import estimate
from ..corruptions.families import COMMON15
from ..errors import SurefootError, UnknownName, printable
from ..files import read_json
from ..intervals import NORMAL_95, Estimate
from ..measurements.base import CLEAN, Rows
from ..measurements.scores import SCORES
from ..notebooks import html_table
from ..plain import plain
from .number_names import Number, check_audit, good_direction, numbers_in
from .shared_images import (
    CLEAN_SCORES,
    COLUMNS,
    MEANS,
    RATES,
    SCALED_ECE,
    Drawing,
    Drawn,
    Sharing,
    damage_of,
    draw_scores,
    shifts_of,
)
from .table import key_of, read_conditions
from .table_files import table_in

AUDIT = "audit.json"
LEVEL = 0.05
MCE = "corruptions.relative_mce"
logger = logging.getLogger("surefoot")


@dataclass(frozen=True)
class Compared:
    """One audit, read: its plain values, and the rows of its clean images where its table is beside it.

    `whole` says that `audit-data/` beside it is its own, and not that of a later audit in the same folder.
    """

    name: str
    folder: Path
    audit: dict[str, Any]
    clean: Rows | None = None
    table: Path | None = None
    whole: bool = True


@dataclass(frozen=True)
class Difference:
    """`second` minus `first` in one number.

    `low` and `high` are its own 95 % interval. `adjusted` is the interval that the verdict uses, as wide as Holm's correction
    for all that were looked at makes it; `real` is whether that leaves out 0. A `primary` number was named beforehand and is
    not corrected for the others. `better` is 1 where the second is better, -1 where it is worse. An unpaired interval is the
    widest that both allow.
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
    adjusted: tuple[float, float] = (math.nan, math.nan)
    primary: bool = False

    @property
    def distance(self) -> float:
        """How many times as wide the interval may be and still leave out 0."""
        side = self.value - self.low if self.value > 0 else self.high - self.value
        return math.inf if side == 0 and self.value else abs(self.value) / side if side else 0.0

    def judged(self, width: float) -> Difference:
        """With the interval that is so many times as wide, and the verdict of that."""
        ends = self.value - width * (self.value - self.low), self.value + width * (self.high - self.value)
        return replace(self, adjusted=ends, real=self.distance > width)


def said_of(difference: Difference) -> str:
    """The interval of the verdict, and the verdict."""
    low, high = difference.adjusted
    verdict = {1: "better", -1: "worse", 0: "equal"}[difference.better] if difference.real else "cannot tell"
    return f"{verdict} ({low:+.4f} to {high:+.4f})"


@dataclass(frozen=True)
class Comparison:
    """Models by name, the value of every number for each of them, the differences, and what to know about them."""

    models: list[str]
    values: dict[str, dict[str, float]]
    differences: list[Difference]
    notes: list[str]

    def _repr_html_(self) -> str:
        """What a notebook shows: every difference, and whether it is real."""
        rows = [(each.name, f"{each.second} - {each.first}", f"{each.value:+.4f}", said_of(each)) for each in self.differences]
        return html_table(" and ".join(self.models), ("", "models", "difference", "verdict"), rows, self.notes)

    def for_page(self) -> list[dict[str, Any]]:
        """The paired differences, plain: the page says that both models were judged on the same images."""
        return [plain(vars(item)) for item in self.differences if item.paired]


def read_compared(path: str | Path) -> Compared:
    """An audit from its `audit.json` or the folder that holds it."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    audit = check_audit(path, read_json("audit", path / AUDIT if path.is_dir() else path))
    name, table = printable(audit["subject"]["name"]), table_in(folder)
    own = table is not None and key_of(table) == audit["subject"].get("table")
    if table is not None and not own:
        logger.warning("'%s' beside '%s' is another audit's: its rows are not used.", table, path)
        return Compared(name, folder, dict(audit), whole=False)
    clean = None if table is None else read_conditions(table, [CLEAN], ("image", *COLUMNS)).get(CLEAN)
    return Compared(name, folder, dict(audit), clean, table)


def name_apart(models: Sequence[Compared]) -> list[Compared]:
    """Models of the same name are called by their folders, and numbered if those are the same too."""
    names = [model.name for model in models]
    called = [str(model.folder) if names.count(model.name) > 1 else model.name for model in models]
    numbered = [f"{name} ({number})" if called.count(name) > 1 else name for number, name in enumerate(called, 1)]
    return [replace(model, name=name) for model, name in zip(models, numbered, strict=True)]


def check_same(models: Sequence[Compared]) -> list[str]:
    """Refuse audits of different data, splits or numbers of classes; other names of classes are only noted."""
    first, notes = models[0].audit["subject"], []
    for model in models[1:]:
        other = model.audit["subject"]
        if first["classes"] != other["classes"]:
            notes.append(f"'{models[0].name}' and '{model.name}' have other names for their classes.")
        checked = [("number of classes", len(first["classes"]), len(other["classes"]))]
        if first["data"] and other["data"]:  # predictions alone have none, and their labels must do
            checked += [("data", first["data"].get("name"), other["data"].get("name"))]
            checked += [("split", first["split"], other["split"])]
        for what, one, two in checked:
            if one != two:
                said = f"'{models[0].name}' and '{model.name}' cannot be compared"
                raise SurefootError(f"{said}: their {what} differ, {one} and {two}.")
    return notes


def compare(
    audits: Sequence[Compared | str | Path], *, all_pairs: bool = False, primary: Sequence[str] = (), seed: int = 0
) -> Comparison:
    """Audits, or the folders that hold them: every one against the first, or every pair.

    Differences are paired on the images that all tables have, under conditions that both saw. `primary` names what was to be
    compared before anyone looked, such as accuracy: it is not corrected for the other numbers.

    >>> import torch
    >>> import surefoot as sf
    >>> labels = torch.arange(60) % 3
    >>> logits = 2 * torch.nn.functional.one_hot(labels, 3) + torch.randn(60, 3)
    >>> for name, logits in {"first": logits, "second": 2 * logits}.items():
    ...     audit = sf.audit_predictions(sf.Predictions.from_logits(logits, labels), name=name, output=name)
    >>> found = sf.compare(["first", "second"])
    >>> found.differences[0].name, found.differences[0].value  # confidence changes no answer
    ('calibration.accuracy', 0.0)
    """
    if len(audits) < 2:
        raise SurefootError("A comparison needs at least two audits.")
    models = name_apart([audit if isinstance(audit, Compared) else read_compared(audit) for audit in audits])
    notes = check_same(models)
    numbers = [numbers_in(model.audit) for model in models]
    drawn, more = paired_scores(models, Drawing(seed))
    notes += more
    differences: list[Difference] = []
    values: dict[str, dict[str, float]] = {}
    for one, two in combinations(range(len(models)), 2) if all_pairs else ((0, index) for index in range(1, len(models))):
        pair = (models[one].name, models[two].name)
        alike = damage_of(models[one].audit) == damage_of(models[two].audit)
        if not alike and all(models[index].audit.get("corruptions") for index in (one, two)):
            notes.append(f"'{pair[0]}' and '{pair[1]}' saw other corruptions: what they did under these is not compared.")
        for name in compared_names(models[one].audit, alike):
            if name in drawn[one] and name in drawn[two]:
                differences.append(paired_difference(name, pair, drawn[one][name], drawn[two][name]))
            elif name in numbers[one] and name in numbers[two]:
                differences.append(unpaired_difference(name, pair, numbers[one][name], numbers[two][name]))
            else:
                continue
            for index in (one, two):
                own = drawn[index][name][0] if name in drawn[index] else numbers[index][name].value
                values.setdefault(name, {})[models[index].name] = own
        if alike:
            differences += relative_mce(pair, [models[index].audit for index in (one, two)], drawn[one], drawn[two])
    differences = [item for item in differences if math.isfinite(item.value)]
    return Comparison(
        [model.name for model in models], values, with_real(differences, primary_names(primary, differences)), notes
    )


def paired_scores(models: Sequence[Compared], drawing: Drawing) -> tuple[list[dict[str, Drawn]], list[str]]:
    """The scores of each audit on the images that all tables have; none for an audit without a table, and a note says so."""
    having = [index for index, model in enumerate(models) if model.clean is not None]
    lacking = [model.name for model in models if model.clean is None]
    notes = [f"No table beside the audit of {', '.join(lacking)}: no difference of it is paired."] if lacking else []
    by_model: list[dict[str, Drawn]] = [{} for _ in models]
    if len(having) < 2:
        return by_model, notes
    tables = [
        Sharing(model.name, model.audit, model.table, model.clean, model.clean["index"])
        for model in models
        if model.clean is not None and model.table is not None
    ]
    scores, more = draw_scores(tables, drawing)
    for index, own in zip(having, scores, strict=True):
        by_model[index] = own
    return by_model, notes + more


def compared_names(audit: Mapping[str, Any], alike: bool) -> list[str]:
    """What may be compared; means over corruptions only where those are alike."""
    attacks = [f"attacks.{name}.{rate}" for name in audit.get("attacks", {}) for rate in RATES]
    shifts = [f"measurements.shift.{name}.{score}" for name in shifts_of(audit) for score in SCORES]
    return [*(f"calibration.{name}" for name in CLEAN_SCORES), SCALED_ECE, *(MEANS if alike else ()), *attacks, *shifts]


def paired_difference(name: str, pair: tuple[str, str], first: Drawn, second: Drawn) -> Difference:
    """Draw by draw, on the same images."""
    return as_difference(name, pair, estimate(second[0] - first[0], second[1] - first[1]), paired=True)


def unpaired_difference(name: str, pair: tuple[str, str], first: Number, second: Number) -> Difference:
    """The widest interval that both allow: right whatever the two have in common."""
    value, low, high = second.value - first.value, -math.inf, math.inf
    if first.low is not None and first.high is not None and second.low is not None and second.high is not None:
        low, high = second.low - first.high, second.high - first.low
    return as_difference(name, pair, Estimate(value, low, high), paired=False)


def as_difference(name: str, pair: tuple[str, str], value: Estimate, *, paired: bool) -> Difference:
    better = good_direction(name) * ((value > 0) - (value < 0))
    return Difference(name, *pair, float(value), value.low, value.high, paired, better)


def relative_mce(
    pair: tuple[str, str], audits: Sequence[Mapping[str, Any]], first: Mapping[str, Drawn], second: Mapping[str, Drawn]
) -> Iterator[Difference]:
    """mCE of the second relative to the first, minus 1: the mean over corruptions of their ratio of errors.

    As Hendrycks and Dietterich (2019) divide by AlexNet's errors: each corruption's error is the mean over severities. Over the
    fifteen of the benchmark, or what both have of them; a corruption without any error of the first is left out.
    """
    ratio = paired_mce(first, second)
    paired = ratio is not None
    if ratio is None:
        ratio = unpaired_mce(*(errors_by_corruption(audit) for audit in audits))
    if ratio is not None:
        yield Difference(MCE, *pair, float(ratio), ratio.low, ratio.high, paired, (ratio < 0) - (ratio > 0))


def paired_mce(first: Mapping[str, Drawn], second: Mapping[str, Drawn]) -> Estimate | None:
    """Draw by draw; None where the first has no errors that both were drawn under."""
    keys = [f"corruptions.{name}.accuracy" for name in COMMON15]
    used = [key for key in keys if key in first and key in second and first[key][0] < 1]
    if not used:
        return None
    value = sum((1 - second[key][0]) / (1 - first[key][0]) for key in used) / len(used) - 1
    below, above = (1 - np.stack([own[key][1] for key in used]) for own in (first, second))
    return estimate(value, mean_ratio(above, below) - 1)


def mean_ratio(above: np.ndarray[Any, Any], below: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The mean over rows of their ratio where it is defined; NaN where it nowhere is."""
    ratios = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    defined = (below > 0).sum(0)
    means: np.ndarray[Any, Any] = np.divide(ratios.sum(0), defined, out=np.full(above.shape[1], np.nan), where=defined > 0)
    return means


def unpaired_mce(first: Mapping[str, Estimate], second: Mapping[str, Estimate]) -> Estimate | None:
    """The same from the intervals of both."""
    names = [name for name in COMMON15 if name in first and first[name] > 0 and name in second]
    if not names:
        return None
    value = sum(second[name] / first[name] for name in names) / len(names) - 1
    low = sum(second[name].low / first[name].high for name in names) / len(names) - 1
    ends = [second[name].high / first[name].low if first[name].low > 0 else math.inf for name in names]
    return Estimate(value, low, sum(ends) / len(names) - 1)


def errors_by_corruption(audit: Mapping[str, Any]) -> dict[str, Estimate]:
    """The mean error over severities of every corruption; its ends are the means of theirs."""
    accuracies: dict[str, list[dict[str, float]]] = defaultdict(list)
    for cell in (audit.get("corruptions") or {}).get("cells", ()):
        accuracies[cell["name"]].append(cell["accuracy"])
    ends = ("value", "high", "low")  # of an accuracy: its upper end is the lower one of the error
    return {
        name: Estimate(*(1 - sum(cell[end] for cell in cells) / len(cells) for end in ends))
        for name, cells in accuracies.items()
    }


def with_real(differences: Sequence[Difference], primary: Sequence[str] = ()) -> list[Difference]:
    """Which differences are real, by Holm's step-down test (Holm 1979) over all that were not named beforehand.

    The k-th clearest of m is judged by an interval of level 1 - 0.05 / (m - k + 1), the normal distribution's width; where one
    fails, the rest are judged by its level.
    """
    chosen = [replace(item, primary=item.name in primary).judged(1.0) for item in differences]
    order = sorted((index for index, item in enumerate(chosen) if not item.primary), key=lambda index: -chosen[index].distance)
    failed: float | None = None
    for rank, index in enumerate(order):
        width = failed or NormalDist().inv_cdf(1 - LEVEL / (len(order) - rank) / 2) / NORMAL_95
        chosen[index] = chosen[index].judged(width)
        failed = failed or (None if chosen[index].real else width)
    return chosen


def primary_names(given: Sequence[str], differences: Sequence[Difference]) -> list[str]:
    """The compared numbers that were named: the whole path, or its end."""
    names = list(dict.fromkeys(item.name for item in differences))
    found = []
    for wanted in given:
        fitting = [name for name in names if name in (wanted, f"calibration.{wanted}")]
        fitting = fitting or [name for name in names if name.endswith(f".{wanted}")]
        if len(fitting) != 1:
            raise UnknownName("number to compare", wanted, [name.removeprefix("calibration.") for name in names])
        found += fitting
    return found
