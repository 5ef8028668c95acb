"""What may be asked of corruptions: names, chains of them, layouts and scales of copies; known without torch."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from ..errors import NotFound, SurefootError, UnknownName
from .families import CORRUPTIONS
from .severities import SCALES

LAYOUTS = ("arrays", "folders")
PACKAGE = "imagecorruptions"  # which has photographs of frost


def check_corruptions(names: Iterable[str]) -> None:
    """Refuse unknown names; `+` makes chains."""
    for name in names:
        for link in name.split("+"):
            CORRUPTIONS.check(link)


def check_copies(layout: str, scale: str) -> None:
    """That copies can be laid out and scaled so."""
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    if scale not in (*SCALES, "auto"):
        raise UnknownName("scale", scale, [*SCALES, "auto"])


def check_copied(folder: str | Path) -> None:
    """That a folder of copies is there."""
    if not Path(folder).is_dir():
        raise NotFound("folder of corrupted copies", folder)


def find_photographs(source: str | Path) -> Path:
    """The folder of frost photographs that `source` means."""
    if str(source) == PACKAGE:
        spec = find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise SurefootError(f"frost must be a folder or an installed '{PACKAGE}', which is not installed.")
        return Path(spec.origin).parent / "frost"
    if not Path(source).is_dir():
        raise NotFound("folder of frost photographs", source)
    return Path(source)
