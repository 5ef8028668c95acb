"""A Hugging Face data set, whatever its columns are called: timm's reader wants `image`, and `label` with names of classes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ..errors import SurefootError, UnknownName
from ..types import Labels
from .collection import Collection, common_size, consecutive_indices, read_class_map, renumber_classes
from .fetching import check_label, check_package
from .folders import AUGMENTATION, LABEL_COLUMNS, SPLIT_FOLDERS
from .reading import read_image

if TYPE_CHECKING:
    from PIL.Image import Image

SAMPLE = 8  # images of each split whose size is looked at


@dataclass(frozen=True)
class Rows:
    """The images of several tables, one table after the other."""

    tables: tuple[Any, ...]
    starts: tuple[int, ...]
    column: str

    def read(self, index: int) -> Image:
        table, start = next((t, s) for t, s in zip(self.tables[::-1], self.starts[::-1], strict=True) if index >= s)
        cell = table[index - start][self.column]
        return read_image(cell["path"] if cell["bytes"] is None else io.BytesIO(cell["bytes"]), f"number {index}")

    def common_size(self) -> tuple[int, int] | None:
        first = [s + k for table, s in zip(self.tables, self.starts, strict=True) for k in range(min(SAMPLE, len(table)))]
        return common_size(self, first)


def load_hugging_face(name: str, root: str | None, class_map: str | None) -> Collection:
    """`hfds/NAME` or `hfds/NAME:COLUMN`, which says the column of the classes; labels are known before images are read."""
    check_package(name)
    from datasets import Image as ImageFeature

    published, column = name_and_column(name)
    tables, left_out = open_tables(name, published, root)
    features = next(iter(tables.values())).features
    image, label = image_column(name, features), label_column(name, features, column)
    chosen = {split: table.select_columns([image, label]) for split, table in tables.items()}
    names, labels = read_labels(
        name, {split: list(table[label]) for split, table in chosen.items()}, features[label], class_map
    )
    undecoded = tuple(table.cast_column(image, ImageFeature(decode=False)) for table in chosen.values())
    given = consecutive_indices({split: len(table) for split, table in chosen.items()})
    source = Rows(undecoded, tuple(int(indices[0]) for indices in given.values()), image)
    notes = (f"splits beside {', '.join(tables)} are left out: {', '.join(left_out)}",) if left_out else ()
    divided = {} if list(tables) == ["train"] else given  # all images are published as `train` where nobody divided them
    return Collection(source, labels, names, divided, augmentation=AUGMENTATION, notes=notes)


def name_and_column(name: str) -> tuple[str, str | None]:
    """`hfds/uoft-cs/cifar100:fine_label` in its two parts; a colon before a slash belongs to a path."""
    published = name.removeprefix("hfds/")
    before, colon, column = published.rpartition(":")
    return (before, column) if colon and not set(column) & set("/\\") else (published, None)


def open_tables(name: str, published: str, root: str | None) -> tuple[dict[str, Any], list[str]]:
    """The table of each split that is not empty, and the names of the splits that are none of ours."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError

    try:
        loaded = load_dataset(published, cache_dir=root)
    except (ValueError, RuntimeError, KeyError, OSError, DatasetsError) as error:
        raise SurefootError(f"Data '{name}' cannot be opened: {' '.join(str(error).split()).rstrip('.')}.") from error
    tables = {}
    for split, usual in SPLIT_FOLDERS.items():
        for called in loaded:
            if called.lower() in usual and len(loaded[called]):
                if split in tables:
                    raise SurefootError(f"Data '{name}' have two splits for {split}: {', '.join(loaded)}.")
                tables[split] = loaded[called]
    if not tables:
        raise SurefootError(f"Data '{name}' have none of the splits {', '.join(SPLIT_FOLDERS)}: {', '.join(loaded)}.")
    known = {called for usual in SPLIT_FOLDERS.values() for called in usual}
    return tables, [called for called in loaded if called.lower() not in known]


def image_column(name: str, features: Mapping[str, Any]) -> str:
    """The column of pictures; the one called `image` where there are several."""
    from datasets import Image as ImageFeature

    columns = [column for column, feature in features.items() if isinstance(feature, ImageFeature)]
    if "image" in columns or len(columns) == 1:
        return "image" if "image" in columns else columns[0]
    raise SurefootError(f"Data '{name}' must have one column of images, got {', '.join(columns) or 'none'}.")


def label_column(name: str, features: Mapping[str, Any], wanted: str | None) -> str:
    """The column of classes: the one named, else `label`, else the only one with names of classes or with a usual name."""
    from datasets import ClassLabel

    if wanted is not None:
        if wanted not in features:
            raise UnknownName(f"column of '{name}'", wanted, list(features))
        return wanted
    named = [column for column, feature in features.items() if isinstance(feature, ClassLabel)]
    usual = [column for column in features if column in (*LABEL_COLUMNS, "labels")]
    columns = ["label"] if "label" in features else named or usual
    if len(columns) == 1:
        return columns[0]
    what = (
        f"several columns of classes, {', '.join(columns)}" if columns else f"no column called label, but {', '.join(features)}"
    )
    raise SurefootError(f"Data '{name}' have {what}: name the one you mean, as in '{name}:{(columns or list(features))[0]}'.")


def read_labels(name: str, cells: dict[str, list[Any]], feature: Any, class_map: str | None) -> tuple[tuple[str, ...], Labels]:
    """Names of the classes and all labels: of a column with names of classes, of whole numbers, or of words."""
    values = [value for column in cells.values() for value in column]
    words = all(isinstance(value, str) for value in values)
    if not words and not all(type(value) is int for value in values):
        odd = next(value for value in values if type(value) is not int)
        raise SurefootError(f"Labels of '{name}' must be whole numbers or words, got {odd!r}.")
    if words:
        own = sorted(set(values))
        numbers = {word: number for number, word in enumerate(own)}
        values = [numbers[word] for word in values]
    elif getattr(feature, "names", None):
        own = list(feature.names)
    else:
        own = list(read_class_map(class_map)) if class_map else [str(number) for number in range(max(values) + 1)]
    for split, column in cells.items():
        for label in () if words else (min(column), max(column)):
            check_label(name, split, label, len(own))
    names, renumbered = renumber_classes(own, class_map)
    return names, torch.tensor(renumbered)[torch.tensor(values)]
