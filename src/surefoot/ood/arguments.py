"""What may be given as foreign pictures, or as pictures without labels; known without torch."""

from __future__ import annotations

from pathlib import Path

from ..data.arguments import DATASETS, has_reader
from ..errors import NotFound, SurefootError, UnknownName

PREFIXES = ("near", "far")
MADE = ("photographs", "noise-uniform", "noise-gaussian", "patches")  # sets that we make


def check_pictures(source: str) -> None:
    """Refuse what is no data set, and no file or folder that is there."""
    path = Path(source)
    if has_reader(source):
        raise SurefootError(f"foreign '{source}' must be a published data set, a folder or a .npz file.")
    if source in DATASETS or path.exists():
        return
    if path.suffix == ".npz":
        raise NotFound("data file", path)
    if len(path.parts) > 1:
        raise NotFound("foreign pictures", path)
    raise UnknownName("set of foreign pictures", source, [*MADE, *DATASETS.names])


def told(name: str) -> tuple[bool | None, str]:
    """Whether a name says near or far, and the name without that."""
    prefix, colon, rest = str(name).partition(":")
    return (prefix == "near", rest) if colon and prefix in PREFIXES else (None, str(name))
