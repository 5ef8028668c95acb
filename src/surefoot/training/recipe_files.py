"""A recipe file as it stands: its sections, unchecked; reading one needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import NotFound, SurefootError
from ..files import read_text
from ..schemas import load_yaml

NAMED = ("data", "model", "objective")
SECTIONS = (*NAMED, "augmentation", "training", "seed", "fingerprint", "surefoot")


def source_of(path: str | Path) -> str:
    """A recipe file in the words of an error."""
    return f"Recipe '{path}'"


def read_recipe(path: str | Path) -> dict[str, Any]:
    """The mapping in a recipe file, unchecked: its names must not be used before `refuse_code` has seen them."""
    if not Path(path).is_file():
        raise NotFound("recipe", path)
    try:
        content = load_yaml(read_text("recipe", path))
    except SurefootError:
        raise
    except ValueError as error:
        raise SurefootError(f"Recipe '{path}' is not valid YAML: {error}.") from error
    if not isinstance(content, dict):
        raise SurefootError(f"Recipe '{path}' must be a mapping of sections.")
    return content
