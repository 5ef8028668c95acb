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
from .folders import AUGMENTATION, LABEL_COLUMNS, SPLIT_FOLDERS
from .image_files import read_image
from .remote_sources import check_label, check_package

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
    """`hfds/NAME[:CONFIG][:COLUMN][@SPLIT]`; the column is that of the classes, and a split that is named is the test set."""
    check_package(name)
    published, words, split = name_parts(name)
    configuration, column = configuration_and_column(name, published, words)
    return from_tables(name, *open_tables(name, published, configuration, split, root), column, class_map)


def is_hugging_face(given: Any) -> bool:
    """Whether it is an object of the package `datasets`."""
    return type(given).__module__.partition(".")[0] == "datasets"


def tables_of(given: Any) -> tuple[dict[str, Any], list[str]]:
    """The tables of a `Dataset` or `DatasetDict`, as they are stored: formats and transforms are left out."""
    kind = type(given).__name__
    if kind not in ("Dataset", "DatasetDict"):
        raise SurefootError(f"A {kind} of Hugging Face is a stream: give its name as 'hfids/NAME', or a Dataset.")
    plain = given.with_format(None)
    return by_our_names("the data", plain) if kind == "DatasetDict" else ({"test": plain}, [])


def from_tables(
    name: str, tables: dict[str, Any], left_out: list[str], column: str | None, class_map: str | None
) -> Collection:
    """The collection of some tables; labels are known before images are read."""
    from datasets import Image as ImageFeature

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


def name_parts(name: str) -> tuple[str, list[str], str | None]:
    """`hfds/uoft-cs/cifar100:config:column@test` in its parts; what stands before a slash belongs to a path."""
    published, at, split = name.removeprefix("hfds/").rpartition("@")
    if not at or set(split) & set("/\\"):
        published, split = name.removeprefix("hfds/"), ""
    words: list[str] = []
    while len(words) < 2:
        before, colon, word = published.rpartition(":")
        if not colon or set(word) & set("/\\"):
            break
        published, words = before, [word, *words]
    return published, words, split or None


def configuration_and_column(name: str, published: str, words: list[str]) -> tuple[str | None, str | None]:
    """Which of the words behind the name is a configuration of the data set; the other is a column."""
    if not words:
        return None, None
    if len(words) == 2:
        return words[0], words[1]
    from datasets import get_dataset_config_names
    from datasets.exceptions import DatasetsError

    try:
        known = get_dataset_config_names(published)
    except (ValueError, RuntimeError, KeyError, OSError, DatasetsError) as error:
        raise cannot_open(name, error) from error
    return (words[0], None) if words[0] in known else (None, words[0])


def cannot_open(name: str, error: Exception) -> SurefootError:
    return SurefootError(f"Data '{name}' cannot be opened: {' '.join(str(error).split()).rstrip('.')}.")


def open_tables(
    name: str, published: str, configuration: str | None, split: str | None, root: str | None
) -> tuple[dict[str, Any], list[str]]:
    """The table of each split that is not empty, and the names of the splits that are none of ours."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError

    try:
        loaded = load_dataset(published, configuration, split=split, cache_dir=root)
    except (ValueError, RuntimeError, KeyError, OSError, DatasetsError) as error:
        raise cannot_open(name, error) from error
    if split is None:
        return by_our_names(name, loaded)
    if not len(loaded):
        raise SurefootError(f"Data '{name}' have no images.")
    return {"test": loaded}, []


def by_our_names(name: str, loaded: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Tables by the names that we have for splits, and the names of the others."""
    tables: dict[str, Any] = {}
    for split, usual in SPLIT_FOLDERS.items():
        for called in loaded:
            if called.lower() in usual and len(loaded[called]):
                if split in tables:
                    raise SurefootError(f"Data '{name}' have two splits for {split}: {', '.join(loaded)}.")
                tables[split] = loaded[called]
    if not tables:
        known, first = ", ".join(SPLIT_FOLDERS), next(iter(loaded), "SPLIT")
        advice = f"name one as '{name}@{first}'" if name.startswith("hfds/") else f"give one of them, data['{first}']"
        raise SurefootError(f"Data '{name}' have none of the splits {known}: {', '.join(loaded)}; {advice}.")
    known_names = {called for usual in SPLIT_FOLDERS.values() for called in usual}
    return tables, [called for called in loaded if called.lower() not in known_names]


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
