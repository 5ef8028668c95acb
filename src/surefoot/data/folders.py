"""Folders of images: class folders, with or without train, val and test above them, or a flat folder with a CSV of labels."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path

import torch

from ..errors import NotFound, SurefootError, UnknownName
from ..files import read_text
from .augmentation import Augmentation
from .collection import Collection, Files, consecutive_indices, number_classes
from .image_files import SUFFIXES

SPLIT_FOLDERS = {
    "train": ("train", "training"),
    "calibration": ("calibration", "cal"),
    "validation": ("validation", "val", "valid"),
    "test": ("test", "testing"),
}
FILE_COLUMNS = ("file", "filename", "file_name", "image", "path")
LABEL_COLUMNS = ("label", "class", "target")
NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?")
AUGMENTATION = Augmentation(crop_padding=0.125, flip=True)


def load_folder(folder: Path, class_map: str | None = None) -> Collection:
    """Class folders; below train, val, test where these exist."""
    if not folder.is_dir():
        raise NotFound("data folder", folder)
    splits, left_out = split_folders(folder)
    roots = splits or {"": folder}
    files = {split: class_files(root) for split, root in roots.items()}
    classes = sorted(set().union(*files.values()))
    known = set(files.get("train", classes))
    for split, by_class in files.items():
        for name in by_class:
            if name not in known:
                raise UnknownName(f"class of {split} (train has no such folder)", name, sorted(known))
    numbers = number_classes(classes, class_map)
    rows = [(path, numbers[name]) for by_class in files.values() for name in sorted(by_class) for path in by_class[name]]
    paths, labels = [path for path, _ in rows], torch.tensor([number for _, number in rows])
    given = consecutive_indices(
        {split: sum(len(members) for members in by_class.values()) for split, by_class in files.items()}
    )
    notes = (f"folders beside {', '.join(splits)} are left out: {', '.join(left_out)}",) if left_out else ()
    return Collection(Files(paths), labels, tuple(numbers), given if splits else {}, augmentation=AUGMENTATION, notes=notes)


def split_folders(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """The folder of each split, by its usual names in any case, and the names of the folders beside them.

    `train` and the like are classes where other folders stand beside them and none of them holds folders itself.
    """
    by_split: dict[str, Path] = {}
    others = []
    for child in folders_in(folder):
        split = next((split for split, names in SPLIT_FOLDERS.items() if child.name.lower() in names), None)
        if split is None:
            others.append(child.name)
        elif split in by_split:
            raise SurefootError(
                f"'{folder}' has two folders for {split}: '{by_split[split].name}' and '{child.name}'; keep one."
            )
        else:
            by_split[split] = child
    if not by_split or (others and not any(folders_in(child) for child in by_split.values())):
        return {}, []
    return {split: by_split[split] for split in SPLIT_FOLDERS if split in by_split}, others


def folders_in(root: Path) -> list[Path]:
    """Its folders, sorted, without hidden ones."""
    return [child for child in sorted(root.iterdir()) if child.is_dir() and not child.name.startswith(".")]


def class_files(root: Path) -> dict[str, list[Path]]:
    """The image files of each class folder, sorted."""
    classes = {child.name: image_files(child) for child in folders_in(root)}
    if not classes:
        raise SurefootError(f"'{root}' has no class folders; for a flat folder, give a CSV of labels (labels, --labels).")
    for name, paths in classes.items():
        if not paths:
            raise SurefootError(f"Class folder '{root / name}' has no images; put some there, or remove it.")
    return classes


def image_files(root: Path) -> list[Path]:
    """The image files below a folder, sorted: links are followed, and nothing hidden counts (copies of editors and systems)."""
    paths: list[Path] = []
    seen = {root.resolve()}
    for parent, folders, files in os.walk(root, followlinks=True):
        here = Path(parent)
        inner = [here / name for name in folders if not name.startswith(".")]
        folders.clear()
        for path in sorted(inner, key=lambda path: (path.is_symlink(), path)):  # a folder before the links to it
            if path.resolve() not in seen:  # each folder once, and a circle of links ends
                seen.add(path.resolve())
                folders.append(path.name)
        paths += [here / name for name in files if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES]
    return sorted(paths)


def load_labelled_folder(folder: Path, labels: Path, class_map: str | None = None) -> Collection:
    """A flat folder whose labels are in a CSV with a file column, a label column and perhaps a split column."""
    if not folder.is_dir():
        raise NotFound("data folder", folder)
    rows = read_rows(labels)
    check_inside(rows, str(labels))
    check_complete(folder, labels, [folder / row[columns_of(rows, str(labels))[0]] for row in rows])
    return load_table(rows, str(labels), folder, class_map, alone=False)


def load_listed_files(listed: Path, root: str | None, class_map: str | None = None) -> Collection:
    """A CSV of paths and labels that is the data set itself; paths are below `root`, or below the folder of the CSV."""
    return load_table(read_rows(listed), str(listed), Path(root) if root else listed.parent, class_map)


def columns_of(rows: list[dict[str, str]], name: str) -> tuple[str, str, str | None]:
    """The columns of files, labels and splits."""
    columns = list(rows[0]) if rows else []
    file, label, split = (
        next((c for c in columns if c.lower() in wanted), None) for wanted in (FILE_COLUMNS, LABEL_COLUMNS, ("split",))
    )
    if file is None or label is None:
        raise SurefootError(f"'{name}' must have columns 'file' and 'label', got {', '.join(columns) or 'nothing'}.")
    return file, label, split


def check_inside(rows: list[dict[str, str]], name: str) -> None:
    """A file of labels names files of its folder, and no others of the machine."""
    column = columns_of(rows, name)[0]
    outside = next((row[column] for row in rows if leaves_folder(row[column])), None)
    if outside is not None:
        raise SurefootError(f"'{name}' must name files of its folder, got '{outside}'.")


def load_table(
    rows: list[dict[str, str]], name: str, folder: Path, class_map: str | None = None, *, alone: bool = True
) -> Collection:
    """Rows of files and labels, called `name` in errors. Without a split column they are one test set, if they are `alone`."""
    file_column, label_column, split_column = columns_of(rows, name)
    paths = [folder / row[file_column] for row in rows]
    check_rows(name, paths, [row[label_column] for row in rows])
    labels_given = sorted({row[label_column] for row in rows})
    numbers = whole_numbers(name, labels_given)
    numeric = bool(numbers)
    if numeric and class_map is None:
        names = tuple(str(number) for number in range(max(numbers.values()) + 1))
    elif numeric:
        names = tuple(number_classes([], class_map))
        if max(numbers.values()) >= len(names):
            raise SurefootError(f"labels must be in 0 to {len(names) - 1}, got {max(numbers.values())} in '{name}'.")
    else:
        numbers = number_classes(labels_given, class_map)
        names = tuple(numbers)
    given: dict[str, list[int]] = {"test": list(range(len(rows)))} if alone and not split_column else {}
    for index, row in enumerate(rows) if split_column else ():
        given.setdefault(split_of(row[split_column or "split"]), []).append(index)
    targets = torch.tensor([numbers[row[label_column]] for row in rows])
    divided = {split: torch.tensor(indices) for split, indices in given.items()}
    return Collection(Files(paths), targets, names, divided, augmentation=AUGMENTATION)


def leaves_folder(name: str) -> bool:
    """Whether a name in a file leads out of the folder that it is for."""
    return Path(name).is_absolute() or ".." in Path(name).parts


def read_rows(labels: Path) -> list[dict[str, str]]:
    """The rows of the CSV by column, without the spaces around their cells."""
    table = csv.reader(io.StringIO(read_text("labels", labels)))
    rows: list[dict[str, str]] = []
    try:
        columns = [cell.strip() for cell in next(table, [])]
        for row in table:
            if row and len(row) != len(columns):
                fault = f"got {len(row)} in line {table.line_num}"
                raise SurefootError(f"'{labels}' must have {len(columns)} cells in every row, {fault}.")
            if row:
                rows.append(dict(zip(columns, (cell.strip() for cell in row), strict=True)))
    except csv.Error as error:
        raise SurefootError(f"'{labels}' is not a CSV: {error} in line {table.line_num}.") from error
    return rows


def whole_numbers(labels: str, names: list[str]) -> dict[str, int]:
    """The labels as class numbers (`2` and `2.0` are the same), or nothing if they are names."""
    if not all(NUMBER.fullmatch(name) for name in names):
        return {}
    values = {name: float(name) for name in names}
    wrong = [name for name, value in values.items() if not (value.is_integer() and value >= 0)]
    if wrong:
        raise SurefootError(f"labels must be names, or whole numbers from 0, got '{wrong[0]}' in '{labels}'.")
    return {name: int(value) for name, value in values.items()}


def check_rows(name: str, paths: list[Path], values: list[str]) -> None:
    """Every row has a label and a file, and no file two rows."""
    for path, value in zip(paths, values, strict=True):
        if not value:
            raise SurefootError(f"'{name}' has no label for '{path.name}'.")
        if not path.is_file():
            raise NotFound(f"image of '{Path(name).name}'", path)
    listed = {path.resolve() for path in paths}
    if len(listed) != len(paths):
        raise SurefootError(f"'{name}' lists {len(paths) - len(listed)} files more than once.")


def check_complete(folder: Path, labels: Path, paths: list[Path]) -> None:
    """Every image of a folder has its row."""
    listed, present = {path.resolve() for path in paths}, image_files(folder)
    missing = [path for path in present if path.resolve() not in listed]
    if missing and all(path.is_file() for path in paths):  # else a row without its file is what is said
        raise SurefootError(
            f"{len(missing)} of {len(present)} images have no label in '{labels}', the first is '{missing[0]}'."
        )


def split_of(name: str) -> str:
    """The split that a folder or CSV calls by one of its usual names."""
    for split, names in SPLIT_FOLDERS.items():
        if name.lower() in names:
            return split
    raise UnknownName("split", name, list(SPLIT_FOLDERS))
