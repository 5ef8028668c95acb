"""Names such as `hfds/NAME`: data that somebody else's package reads, and what must hold for all of them."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import SurefootError

PACKAGES = {"hfds": "datasets", "hfids": "datasets", "wds": "webdataset", "tfds": "tensorflow_datasets"}


def has_reader(name: str) -> bool:
    """Whether the name begins like one of a reader."""
    return name.partition("/")[0] in PACKAGES and "/" in name


def is_stream(name: str) -> bool:
    """Whether images come in the reader's order only."""
    return has_reader(name) and not name.startswith("hfds/")


def check_package(name: str) -> None:
    """That the package which reads these data is there."""
    package = PACKAGES[name.partition("/")[0]]
    if find_spec(package) is None:
        raise SurefootError(f"Data '{name}' needs the package '{package}': pip install {package.replace('_', '-')}.")


def check_label(name: str, split: str, label: int, classes: int) -> int:
    """The label, if it is a class; publishers hide those of a test split as -1."""
    if not 0 <= label < classes:
        hidden = " (the publisher hides its labels)" if label == -1 else ""
        raise SurefootError(f"labels must be in 0 to {classes - 1}, got {label} in the {split} split of '{name}'{hidden}.")
    return label
