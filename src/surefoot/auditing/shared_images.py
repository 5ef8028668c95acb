"""Which images several tables have in common, and what each model scored on them in every draw of the bootstrap.

Rows are matched by the id of their image, never by their position in a table, so that audits of other subsets can be paired."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from ..calibration.bootstrap import DRAWS
from ..calibration.scoring import samples
from ..errors import SurefootError
from ..measurements.base import SHIFT, Rows
from ..measurements.scores import BINS, SCALED, SCORES, attack_draws, broken, per_image_of, score
from .damage import conditions
from .table import read_conditions

Array = np.ndarray[Any, Any]
Drawn = tuple[float, Array]  # a value, and that of every draw of images
CLEAN_SCORES = ("accuracy", "nll", "brier", "ece", "adaptive_ece", "rms", "aurc", "auroc")
SCALED_ECE = "temperature.calibration.ece"
MEANS = tuple(f"corruptions.mean_{name}" for name in (*SCORES, SCALED))
RATES = ("success_rate", "robust_accuracy")
COLUMNS = ("index", "label", "correct", "confidence", "nll", "brier", "scaled_confidence")


@dataclass(frozen=True)
class Drawing:
    """How the intervals of a comparison are drawn."""

    seed: int
    intervals: int = DRAWS


@dataclass(frozen=True)
class Sharing:
    """An audit that has a table; `indices` are those of the images that all audits have, in the same order for all."""

    name: str
    audit: Mapping[str, Any]
    table: Path
    clean: Rows
    indices: Array

    def rows(self, wanted: Sequence[str]) -> dict[str, Rows]:
        return read_conditions(self.table, wanted, COLUMNS)


def share(models: Sequence[Sharing]) -> tuple[list[Sharing], list[str]]:
    """The same audits with the images that all have, and a note where some were left out; refuses other labels."""
    keys = image_keys([model.clean for model in models])
    common = reduce(np.intersect1d, keys)
    if len(common) < 2:
        raise SurefootError(f"'{models[0].name}' and the others have fewer than 2 images in common.")
    shared = []
    for model, own in zip(models, keys, strict=True):
        order = np.argsort(own)
        where = order[np.searchsorted(own, common, sorter=order)]
        shared.append(replace(model, indices=model.clean["index"][where]))
        if model is models[0]:
            labels = model.clean["label"][where]
        elif differ := int((model.clean["label"][where] != labels).sum()):
            raise SurefootError(f"'{models[0].name}' and '{model.name}' have other labels for {differ} of the same images.")
    return shared, fewer("The audits saw", [len(own) for own in keys], len(common))


def image_keys(tables: Sequence[Rows]) -> list[Array]:
    """What every image is called in every audit: its id, numbered where the same picture comes again.

    Where ids do not meet, as those of predictions alone, which are only numbers, it is the index in the data set.
    """
    if len(reduce(np.intersect1d, [rows["image"].astype(str) for rows in tables])) < 2:
        return [rows["index"] for rows in tables]
    return [np.array(numbered(rows["image"])) for rows in tables]


def numbered(names: Array) -> list[str]:
    seen: dict[str, int] = defaultdict(int)
    keys = []
    for name in map(str, names):
        seen[name] += 1
        keys.append(f"{name} {seen[name]}")
    return keys


def fewer(said: str, sizes: Sequence[int], kept: int) -> list[str]:
    """The note that images were left out, if some were."""
    if all(size == kept for size in sizes):
        return []
    return [f"{said} {' and '.join(map(str, sizes))} images; {kept} that all saw are compared."]


def draw_scores(models: Sequence[Sharing], drawing: Drawing) -> tuple[list[dict[str, Drawn]], list[str]]:
    """For every audit the numbers by name on the images that it shares with the others, and what was left out for that."""
    models, notes = share(models)
    scores = [clean_scores(rows, drawing) for (rows,) in same_images(models, [[model.clean] for model in models])]
    for damage in dict.fromkeys(damage_of(model.audit) for model in models):
        group = [index for index, model in enumerate(models) if damage_of(model.audit) == damage]
        cells = [(name, f"{name}/{severity:g}") for name, severity in cells_of(models[group[0]].audit)]
        tables, more = rows_under([models[index] for index in group], [condition for _, condition in cells], "corruptions")
        notes += more
        for index, rows in zip(group, tables, strict=False):
            scores[index] |= corruption_scores([name for name, _ in cells], rows, drawing)
    for attack in dict.fromkeys(name for model in models for name in model.audit.get("attacks", {})):
        group = [index for index, model in enumerate(models) if attack in model.audit.get("attacks", {})]
        tables, more = rows_under([models[index] for index in group], [attack], attack, with_clean=True)
        notes += more
        for index, rows in zip(group, tables, strict=False):
            scores[index] |= {f"attacks.{attack}.{rate}": value for rate, value in attack_rates(rows, drawing).items()}
    for shift in dict.fromkeys(name for model in models for name in shifts_of(model.audit)):
        group = [index for index, model in enumerate(models) if shift in shifts_of(model.audit)]
        drawn, more = shift_scores([models[index] for index in group], shift, drawing)
        notes += more
        for index, own in zip(group, drawn, strict=False):
            scores[index] |= own
    return scores, notes


def shifts_of(audit: Mapping[str, Any]) -> list[str]:
    """The further test sets of an audit."""
    return list((audit.get("measurements") or {}).get("shift") or ())


def shift_scores(models: Sequence[Sharing], shift: str, drawing: Drawing) -> tuple[list[dict[str, Drawn]], list[str]]:
    """For every audit the scores of a further test set, on its images that all have; none where they are other ones."""
    read = [read_conditions(model.table, [f"{SHIFT}{shift}"], ("image", *COLUMNS)) for model in models]
    if len(models) < 2 or not all(read):
        return [], []
    try:
        shared, notes = share([replace(model, clean=rows[f"{SHIFT}{shift}"]) for model, rows in zip(models, read, strict=True)])
    except SurefootError as error:
        return [], [f"Shift {shift} is not paired: {error}"]
    scored = [score(rows, SCORES, drawing)[0] for rows in same_images(shared, [[model.clean] for model in shared])]
    path = f"measurements.shift.{shift}"
    return [{f"{path}.{name}": (each.values[name], each.draws[name]) for name in SCORES} for each in scored], notes


def damage_of(audit: Mapping[str, Any]) -> tuple[Any, frozenset[Any]]:
    """What corruptions an audit met: those of two audits are compared where this is the same."""
    return audit["subject"].get("depth"), frozenset(conditions(audit))


def cells_of(audit: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [(cell["name"], cell["severity"]) for cell in (audit.get("corruptions") or {}).get("cells", ())]


def rows_under(
    models: Sequence[Sharing], wanted: Sequence[str], said: str, *, with_clean: bool = False
) -> tuple[list[list[Rows]], list[str]]:
    """For every audit the rows under each condition, of the images that all put under all of them; none where that cannot be.

    `with_clean` puts the same images as they are before them.
    """
    if len(models) < 2 or not wanted:
        return [], []
    read = [model.rows(wanted) for model in models]
    if any(condition not in rows for rows in read for condition in wanted):
        return [], []
    clean = [[model.clean] if with_clean else [] for model in models]
    kept = same_images(models, [own + [rows[name] for name in wanted] for own, rows in zip(clean, read, strict=True)])
    images = len(kept[0][0]["index"])
    if images < 2:
        return [], [f"Under {said} no two images were seen by all: no difference there is paired."]
    return kept, fewer(f"Under {said} the audits saw", [len(rows[wanted[0]]["index"]) for rows in read], images)


def same_images(models: Sequence[Sharing], tables: Sequence[Sequence[Rows]]) -> list[list[Rows]]:
    """The rows of the images that all of these have, in the same order, with the index that the first audit gives them.

    Bootstrap weights belong to an index, so that all audits draw the same images.
    """
    there = np.ones(len(models[0].indices), dtype=bool)
    for model, own in zip(models, tables, strict=True):
        for rows in own:
            there &= np.isin(model.indices, rows["index"])
    ids = models[0].indices[there]
    return [[at(rows, model.indices[there], ids) for rows in own] for model, own in zip(models, tables, strict=True)]


def at(rows: Rows, indices: Array, ids: Array) -> Rows:
    """The rows with these indices, which come to be called `ids`; rows are in the order of their index."""
    where = np.searchsorted(rows["index"], indices)
    return {**{name: values[where] for name, values in rows.items()}, "index": ids}


def clean_scores(rows: Rows, drawing: Drawing) -> dict[str, Drawn]:
    """The scores of the clean images, and ECE after temperature scaling."""
    values, draws = samples(None, per_image_of(rows), CLEAN_SCORES, BINS, drawing.intervals, drawing.seed)
    drawn: dict[str, Drawn] = {f"calibration.{name}": (values[name], draws[name]) for name in CLEAN_SCORES}
    if "scaled_confidence" in rows:
        (scaled,) = score([rows], ("ece",), drawing, scaled=True)
        drawn[SCALED_ECE] = scaled.values["ece"], scaled.draws["ece"]
    return drawn


def corruption_scores(names: Sequence[str], cells: Sequence[Rows], drawing: Drawing) -> dict[str, Drawn]:
    """Means over all corruptions, and of each, as `corruptions.NAME.accuracy`, the mean accuracy over its severities."""
    scored = score(cells, SCORES, drawing)
    by_score = {name: [(each.values[name], each.draws[name]) for each in scored] for name in SCORES}
    if all("scaled_confidence" in rows for rows in cells):
        scaled = score(cells, ("ece",), drawing, scaled=True)
        by_score[SCALED] = [(each.values["ece"], each.draws["ece"]) for each in scaled]
    means = {f"corruptions.mean_{name}": mean(drawn) for name, drawn in by_score.items()}
    for name in dict.fromkeys(names):
        own = [drawn for drawn, other in zip(by_score["accuracy"], names, strict=True) if other == name]
        means[f"corruptions.{name}.accuracy"] = mean(own)
    return means


def mean(drawn: Sequence[Drawn]) -> Drawn:
    return sum(value for value, _ in drawn) / len(drawn), np.mean([draws for _, draws in drawn], axis=0)


def attack_rates(rows: Sequence[Rows], drawing: Drawing) -> dict[str, Drawn]:
    """How often an attack succeeds where the model was right, and how often the model is right under it."""
    clean, attacked = rows
    lost, right = int(broken(clean, attacked).sum()), int(clean["correct"].sum())
    draws = attack_draws(clean, attacked, drawing.seed, drawing.intervals)
    values = lost / right if right else math.nan, (right - lost) / len(clean["correct"])
    return {rate: (value, draws[rate]) for rate, value in zip(RATES, values, strict=True)}
