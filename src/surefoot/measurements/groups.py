"""Results for each class and for groups that the user names: an average hides whom a model fails."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..calibration.bins import reliability
from ..calibration.scoring import estimates
from ..data.dataset import Split
from ..errors import NotFound, SurefootError, UnknownName, require
from ..files import not_utf8
from ..intervals import wilson
from ..types import Estimate, Predictions

PAIRS = 20  # of classes that the page shows
MOST_CLASSES = 30  # of a matrix that the eye can read


@dataclass(frozen=True)
class ClassResult:
    """One class: how often it is recognised, how often a prediction of it is right, and what it is taken for most often."""

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


def class_results(predictions: Predictions, names: Sequence[str]) -> tuple[ClassResult, ...]:
    """Recall, precision and confidence of every class, and what it is taken for most often."""
    count = predictions.num_classes
    labels, predicted = predictions.labels, predictions.classes
    images, predicted_counts = labels.bincount(minlength=count), predicted.bincount(minlength=count)
    right = labels[labels == predicted].bincount(minlength=count)
    confidence = torch.zeros(count, dtype=torch.float64).index_add_(0, labels, predictions.confidences.double())
    commonest: dict[int, tuple[int, int]] = {}
    for label, answer, times in mistakes(predictions):
        commonest.setdefault(label, (answer, times))
    results = []
    for number in range(count):
        total, correct, claims = int(images[number]), int(right[number]), int(predicted_counts[number])
        most, times = commonest.get(number, (0, 0))
        results.append(
            ClassResult(
                name=names[number] if number < len(names) else str(number),
                images=total,
                accuracy=share(correct, total),
                precision=share(correct, claims),
                confidence=float(confidence[number]) / total if total else None,
                taken_for=names[most] if times and most < len(names) else None,
                taken_for_images=times,
            )
        )
    return tuple(results)


def confusion(predictions: Predictions) -> dict[str, Any]:
    """How often each class is taken for each other, for the page: all of it for a few classes, else the commonest mistakes.

    A pair is a label, an answer and how many images have both.
    """
    count = predictions.num_classes
    pairs = [list(each) for each in mistakes(predictions)[:PAIRS]]
    if count > MOST_CLASSES:
        return {"pairs": pairs, "matrix": None}
    matrix = (predictions.labels * count + predictions.classes).bincount(minlength=count * count).view(count, count)
    return {"pairs": pairs, "matrix": matrix.tolist()}


def mistakes(predictions: Predictions) -> list[tuple[int, int, int]]:
    """A label, an answer that is wrong and how often it was given, the commonest first; no more memory than images need."""
    count, wrong = predictions.num_classes, predictions.labels != predictions.classes
    both, times = (predictions.labels[wrong] * count + predictions.classes[wrong]).unique(return_counts=True)
    order = times.argsort(descending=True, stable=True)
    return [(at // count, at % count, many) for at, many in zip(both[order].tolist(), times[order].tolist(), strict=True)]


def share(correct: int, count: int) -> Estimate | None:
    """A share with its Wilson interval; None of nothing."""
    if not count:
        return None
    interval = wilson(correct, count)
    return Estimate(interval["accuracy"], interval["low"], interval["high"])


def group_results(predictions: Predictions, groups: Sequence[str], seed: int) -> tuple[GroupResult, ...]:
    """The scores of every group, the largest first; `groups` names the group of each image."""
    check_groups(groups, len(predictions))
    by_group: dict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(groups):
        by_group[name].append(index)
    results = []
    for name in sorted(by_group, key=lambda name: (-len(by_group[name]), name)):
        part = predictions[torch.tensor(by_group[name])]
        scores = estimates(part, ["accuracy", "ece", "nll"], seed=seed)
        results.append(GroupResult(name, len(part), **scores, signed_error=reliability(part).signed_error))
    return tuple(results)


def check_groups(groups: Sequence[str] | None, images: int) -> None:
    """Before anything is measured: a group for each image."""
    if groups is not None and len(groups) != images:
        raise SurefootError(f"groups must name one for each of {images} images, got {len(groups)}.")


def read_groups(path: str | Path, column: str, split: Split | Predictions) -> list[str]:
    """The group of each image from a CSV: matched by a column `index` or `file`, or row by row where there is neither."""
    path = Path(path)
    if not path.is_file():
        raise NotFound("CSV of groups", path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except UnicodeDecodeError as error:
        raise not_utf8("CSV of groups", path, error) from error
    names = list(rows[0]) if rows else []
    if column not in names:
        raise UnknownName(f"column of '{path}'", column, names)
    short = next((line for line, row in enumerate(rows, 2) if None in row.values()), None)
    require(short is None, f"line {short} of '{path}'", "as long as the first", None if short is None else rows[short - 2])
    if "index" in names:
        wrong = next((row["index"] for row in rows if not row["index"].strip().isdigit()), None)
        require(wrong is None, f"index in '{path}'", "whole numbers", wrong)
        by_index = {str(int(row["index"])): row[column] for row in rows}
        return matched(by_index, [[str(index)] for index in split_indices(split)], rows, path)
    files = file_names(split)
    if "file" in names and files is None and not isinstance(split, Predictions):
        raise SurefootError(f"'{path}' goes by `file`, and these images come from no files: give a column `index`.")
    if "file" in names and files is not None:
        by_file = {Path(row["file"]).as_posix(): row[column] for row in rows}
        return matched(by_file, [endings(name) for name in files], rows, path)
    if len(rows) != len(split):
        raise SurefootError(
            f"'{path}' needs a column `index` or `file`, or a row for each of {len(split)} images; it has {len(rows)}."
        )
    return [row[column] for row in rows]


def split_indices(split: Split | Predictions) -> list[int]:
    """Each image's index in the whole data set."""
    indices = getattr(split, "indices", None)
    if indices is None:
        raise SurefootError("These data have no indices ahead: leave out the column `index` and give a row for each image.")
    return [int(index) for index in indices]


def file_names(split: Split | Predictions) -> list[str] | None:
    """Where the images come from, for those read from files."""
    files = getattr(split, "files", None)
    return None if files is None else [Path(files[index]).as_posix() for index in split_indices(split)]


def endings(name: str) -> list[str]:
    """A path, and it without its leading folders, one by one."""
    parts = name.split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def matched(groups: dict[str, str], names: Sequence[Sequence[str]], rows: Sequence[object], path: Path) -> list[str]:
    """The group of each image, by the first of its names that has a row; one row for each image, and one image for a row."""
    if len(groups) < len(rows):
        raise SurefootError(f"'{path}' has rows for the same image: {len(rows)} rows, {len(groups)} images.")
    keys = [next((name for name in own if name in groups), None) for own in names]
    if None in keys:
        raise SurefootError(f"'{path}' has no row for {keys.count(None)} of {len(keys)} images.")
    if len(set(keys)) < len(keys):
        often = next(key for key in keys if keys.count(key) > 1)
        raise SurefootError(f"'{often}' in '{path}' names {keys.count(often)} images: give more of their paths.")
    return [groups[key] for key in keys if key is not None]
