"""Predictions on disk: safetensors chunks, so that no more than a chunk is in memory, and `.npz` and CSV for other programs.

A folder of chunks holds `00000.safetensors`, `00001.safetensors`, ... and, written last, `predictions.json`. An `.npz` has
arrays `logits` or `probabilities`, `labels`, and perhaps `features` and `indices`. A CSV has a line of names: `label`,
`logit_0`, `logit_1`, ... or `probability_0`, ..., and perhaps `index`; or classes by name (`probability_cat`).
Names say what the numbers are; nothing is guessed.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .errors import NotFound, SurefootError, UnknownName, shown
from .files import not_utf8, read_arrays, read_json, read_tensors, replacing, write_json, write_tensors
from .limits import check_limit, check_memory
from .types import Predictions

CHUNK_BYTES = 2**25  # of logits in one chunk
COMPLETE = "predictions.json"
CHUNK_NAME = re.compile("[0-9]{5,}")
NUMBER = re.compile("[-+]?[0-9]+")
SUFFIXES = (".safetensors", ".npz", ".csv")
ROUNDED, MOST_ROUNDED, TINY = 1e-3, 0.02, 1e-9  # how far a sum of probabilities is from 1 where it is looked at, and at most
LOGIT, PROBABILITY = "logit_", "probability_"
DIGITS = {torch.float64: ".17g", torch.float32: ".9g"}


def write_predictions(path: str | Path, batches: Iterable[Predictions]) -> None:
    """Write batches in the format of the path's suffix; chunks and CSV hold no more than a chunk in memory."""
    path = Path(path)
    if path.suffix == ".csv":
        write_csv(path, batches)
    elif path.suffix in SUFFIXES:
        tensors = tensors_of(Predictions.join(batches))
        if path.suffix == ".npz":
            arrays: dict[str, Any] = {name: value.numpy() for name, value in tensors.items()}
            with replacing(path) as beside, open(beside, "wb") as file:
                np.savez(file, **arrays)
        else:
            write_tensors(path, tensors)
    elif path.suffix:
        raise UnknownName("format of predictions", path.suffix, SUFFIXES)
    else:
        write_chunks(path, batches)


def write_chunks(folder: Path, batches: Iterable[Predictions]) -> None:
    """Write numbered chunks, and then the file that says they are all there."""
    (folder / COMPLETE).unlink(missing_ok=True)
    chunks = images = 0
    for chunks, chunk in enumerate(regroup(batches), 1):
        write_tensors(folder / f"{chunks - 1:05}.safetensors", tensors_of(chunk))
        images += len(chunk)
    for leftover in folder.glob("*.safetensors"):
        if CHUNK_NAME.fullmatch(leftover.stem) and int(leftover.stem) >= chunks:
            leftover.unlink()
    write_json(folder / COMPLETE, {"chunks": chunks, "images": images})


def regroup(batches: Iterable[Predictions]) -> Iterator[Predictions]:
    """Batches of any size as chunks of about one size."""
    waiting: list[Predictions] = []
    for batch in batches:
        rows = rows_of(batch.logits)
        for start in range(0, len(batch), rows):
            waiting.append(batch[start : start + rows])
            if sum(map(len, waiting)) >= rows:
                yield Predictions.join(waiting)
                waiting = []
    if waiting:
        yield Predictions.join(waiting)


def rows_of(logits: Tensor) -> int:
    """How many images a chunk holds."""
    return max(1, CHUNK_BYTES // (logits.shape[1] * logits.element_size()))


def tensors_of(predictions: Predictions) -> dict[str, Tensor]:
    named = {name: getattr(predictions, name) for name in ("logits", "labels", "features", "indices")}
    return {name: value.detach().cpu() for name, value in named.items() if value is not None}


def write_csv(path: Path, batches: Iterable[Predictions]) -> None:
    """Labels (by name, where classes have names), indices and logits with all their digits; features do not fit a CSV."""
    with replacing(path) as beside, open(beside, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        for number, batch in enumerate(batches):
            named, classes = batch.indices is not None, batch.class_names or tuple(map(str, range(batch.num_classes)))
            if number == 0:
                lines.writerow(["label", *(["index"] * named), *(f"{LOGIT}{name}" for name in classes)])
            digits = DIGITS.get(batch.logits.dtype, ".9g")
            indices = batch.indices.tolist() if batch.indices is not None else []
            for row, (label, logits) in enumerate(zip(batch.labels.tolist(), batch.logits.tolist(), strict=True)):
                lines.writerow([classes[label], *indices[row : row + named], *(format(value, digits) for value in logits)])


class StoredPredictions:
    """Predictions in a file or folder, read chunk by chunk as often as they are iterated over."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise NotFound("predictions", self.path)
        if self.path.is_dir() and not (self.path / COMPLETE).is_file():
            raise SurefootError(f"'{self.path}' holds no complete predictions: it has no {COMPLETE}.")
        if self.path.is_file() and self.path.suffix not in SUFFIXES:
            raise UnknownName("format of predictions", self.path.suffix, SUFFIXES)

    def __iter__(self) -> Iterator[Predictions]:
        if self.path.is_dir():
            count = read_json("predictions", self.path / COMPLETE)["chunks"]
            for number in range(count):
                yield named_predictions(read_tensors("chunk", self.path / f"{number:05}.safetensors"), self.path)
        elif self.path.suffix == ".safetensors":
            yield from read_slices(self.path)
        elif self.path.suffix == ".npz":
            yield read_npz(self.path)
        else:
            yield from read_csv(self.path)

    def load(self) -> Predictions:
        """All of them at once; refused where memory for them and for a second copy while they are joined is not free."""
        files = self.path.iterdir() if self.path.is_dir() else [self.path]
        copies = 1 if self.path.suffix == ".csv" else 2  # a CSV takes more room as text than as numbers
        check_memory(f"The predictions of '{self.path}'", copies * sum(file.stat().st_size for file in files))
        return Predictions.join(self)


def named_predictions(tensors: dict[str, Tensor], path: Path) -> Predictions:
    """Predictions from tensors whose names say what they are."""
    kinds = [name for name in ("logits", "probabilities") if name in tensors]
    if len(kinds) != 1 or "labels" not in tensors:
        names = ", ".join(sorted(tensors)) or "nothing"
        raise SurefootError(f"'{path}' must hold labels, and logits or probabilities; it holds {names}.")
    make = Predictions.from_logits if kinds == ["logits"] else Predictions.from_probabilities
    try:
        return make(tensors[kinds[0]], tensors["labels"], tensors.get("features"), tensors.get("indices"))
    except SurefootError as error:
        raise SurefootError(f"'{path}': {error}") from error


def read_slices(path: Path) -> Iterator[Predictions]:
    """One safetensors file, some rows at a time."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            names = file.keys()
            slices: dict[str, Any] = {name: file.get_slice(name) for name in names}
            scores = slices.get("logits", slices.get("probabilities"))
            if scores is None or len(scores.get_shape()) != 2:
                named_predictions({name: torch.empty(0) for name in slices}, path)
                raise SurefootError(f"'{path}': logits must be images x classes.")
            count, rows = scores.get_shape()[0], rows_of(scores[:1])
            for start in range(0, max(count, 1), rows):
                yield named_predictions({name: part[start : start + rows] for name, part in slices.items()}, path)
    except SafetensorError as error:
        raise SurefootError(f"predictions '{path}' is not a whole safetensors file: {error}.") from error


def load_unlabelled(path: str | Path) -> Predictions:
    """Predictions whose labels nobody knows, which are 0 then; a CSV has labels all the same, of whatever number."""
    path = Path(path)
    if not path.is_file() or path.suffix not in (".npz", ".safetensors"):
        return StoredPredictions(path).load()
    tensors = plain_tensors(path) if path.suffix == ".npz" else read_tensors("predictions", path)
    scores = tensors.get("logits", tensors.get("probabilities"))
    if scores is not None and "labels" not in tensors:
        tensors["labels"] = torch.zeros(len(scores), dtype=torch.long)
    return named_predictions(tensors, path)


def read_npz(path: Path) -> Predictions:
    return named_predictions(plain_tensors(path), path)


def plain_tensors(path: Path) -> dict[str, Tensor]:
    """The arrays of an `.npz` by name, which are read whole."""
    arrays = read_arrays(path)
    try:
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    except TypeError as error:  # text, dates
        raise SurefootError(f"'{path}' is not an .npz of plain arrays: {str(error).splitlines()[0]}.") from error


def unfit_cell(block: list[list[str]], names: list[str], columns: list[int]) -> str:
    """The first cell of some rows that is missing or no number, with its row and column; nothing where all are numbers."""
    for row in block:
        for column in columns:
            text = row[column].strip() if column < len(row) else None
            try:
                float(text or "")
            except ValueError:
                said = "is missing" if not text else f"is {shown(text)}, no number"
                return f"{names[column]} {said} in the row '{shown(','.join(row))[1:-1]}'"
    return ""


def without_rounding(probabilities: Tensor, block: list[list[str]], columns: list[int]) -> Tensor:
    """Rows that miss the sum of 1 by no more than the rounding of their digits, divided by their sum."""
    sums = probabilities.sum(1)
    for number in ((sums - 1).abs() > ROUNDED).nonzero().flatten().tolist():
        digits = max(len(block[number][column].partition(".")[2].strip()) for column in columns)
        if abs(float(sums[number]) - 1) <= min(len(columns) * 0.5 * 10.0**-digits, MOST_ROUNDED) + TINY:
            probabilities[number] /= sums[number]
    return probabilities


def read_csv(path: Path) -> Iterator[Predictions]:
    """A CSV with a line of names, some rows at a time."""
    try:
        yield from read_rows(path)
    except UnicodeDecodeError as error:
        raise not_utf8("predictions", path, error) from error
    except csv.Error as error:
        raise SurefootError(f"'{path}' is not a CSV: {error}.") from error


def read_rows(path: Path) -> Iterator[Predictions]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        names = [name.strip() for name in next(lines, [])]
        kind, classes = scored_classes(path, names)
        check_limit("SUREFOOT_MAX_CLASSES", f"'{path}' has classes:", len(classes))
        numbers = None if classes[0] == "0" else {name: number for number, name in enumerate(classes)}
        place = {name: number for number, name in enumerate(names)}
        columns = [place[f"{kind}{name}"] for name in classes]
        rows = max(1, CHUNK_BYTES // (len(columns) * 64))  # a number in a list of Python's takes more than in a tensor
        first = True
        while True:
            block = [row for _, row in zip(range(rows), lines, strict=False) if row]
            if not block and not first:
                return
            first = False
            said = [row[place["label"]].strip() for row in block if len(row) > place["label"]]
            if unknown := [label for label in said if not (label in numbers if numbers else NUMBER.fullmatch(label))]:
                if numbers:
                    raise SurefootError(f"'{path}': {UnknownName('label', unknown[0], classes)}")
                raise SurefootError(
                    f"'{path}': labels must be whole numbers from 0, got '{unknown[0]}'; names need columns {kind}NAME."
                )
            try:
                scores = torch.tensor([[float(row[k]) for k in columns] for row in block], dtype=torch.float64)
                scores = scores.view(len(block), len(columns))
                labels = torch.tensor(
                    [numbers[text] if numbers else int(text) for text in (row[place["label"]].strip() for row in block)],
                    dtype=torch.long,
                )
                indices = torch.tensor([int(row[place["index"]]) for row in block]) if "index" in names else None
            except (ValueError, IndexError) as error:
                where = unfit_cell(block, names, columns)
                raise SurefootError(f"'{path}' has a row that does not fit its names: {where or error}.") from error
            if kind == PROBABILITY:
                scores = without_rounding(scores, block, columns)
            tensors = {
                "logits" if kind == LOGIT else "probabilities": scores,
                "labels": labels,
            }
            found = named_predictions(tensors | ({} if indices is None else {"indices": indices}), path)
            yield replace(found, class_names=tuple(numbers)) if numbers else found


def scored_classes(path: Path, names: list[str]) -> tuple[str, list[str]]:
    """What the numbers of a CSV are (`logit_` or `probability_`), and of which classes: 0, 1, ..., or names in their order."""
    scored = {kind: [name.removeprefix(kind) for name in names if name.startswith(kind)] for kind in (LOGIT, PROBABILITY)}
    kinds = [kind for kind in scored if "0" in scored[kind]] or [kind for kind in scored if scored[kind]]
    if len(kinds) != 1 or "label" not in names:
        raise SurefootError(
            f"'{path}' must begin with a line of names: label, {LOGIT}0, {LOGIT}1, ... or {PROBABILITY}0, ..., "
            f"or names of classes, as {PROBABILITY}cat."
        )
    kind, classes = kinds[0], scored[kinds[0]]
    if not any(map(str.isdecimal, classes)):
        if len(set(classes)) < len(classes):
            raise SurefootError(f"'{path}' has the column {kind}{Counter(classes).most_common(1)[0][0]} twice.")
        return kind, classes
    wanted = [str(number) for number in range(len(classes))]
    if set(classes) != set(wanted):
        unfit = ", ".join(f"{kind}{name}" for name in sorted(set(classes) - set(wanted)) or classes)
        raise SurefootError(f"'{path}' must have each of {kind}0 to {kind}{wanted[-1]} once; {unfit} does not fit.")
    return kind, wanted
