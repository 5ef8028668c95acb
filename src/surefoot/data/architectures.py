"""Whether a library has an architecture, told from its source, since importing one to say no takes seconds."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..errors import UnknownName
from .settings import FOLDER, HUB, OWN, TORCHVISION, folder_name, is_foreign, split_name

REGISTERED = re.compile(r"^@register_model(?:\(\))?\n(?:@.*\n)*def (\w+)\(", re.MULTILINE)
WORDS = re.compile(r"(?:\bdef |[\"'])([\w.]+)")  # older names, and those with a tag of their weights, are strings there


def check_architecture(name: str, pretrained: bool | str = False) -> None:
    """Refuse a name, or a tag of timm's weights, that stands nowhere in timm or torchvision.

    Of any other the library itself decides, when it is loaded.
    """
    if name in OWN or ":" in name or is_foreign(name) or folder_name(name).startswith((HUB, FOLDER)):
        return
    name, tag = split_name(name)
    library, bare = ("torchvision", name.removeprefix(TORCHVISION)) if name.startswith(TORCHVISION) else ("timm", name)
    tags_of = tags_by_name(library)
    if bare in tags_of:
        tags = tags_of[bare]  # none where they are put together
        tag = pretrained.removeprefix(f"{bare}.") if isinstance(pretrained, str) else tag
        if tag and tags and tag not in tags:
            raise UnknownName(f"weights of {bare}", tag, tags)
        return
    known = {library: REGISTERED.findall(source_of(library)) for library in ("timm", "torchvision")}
    names = [*OWN, *sorted(known["timm"]), *(TORCHVISION + each for each in known["torchvision"])]
    raise UnknownName("model", name, [TORCHVISION + name] if name in known["torchvision"] else names)


@cache
def tags_by_name(library: str) -> dict[str, list[str]]:
    """Every word that may be a name of a model there, with the tags that stand behind it."""
    tags: dict[str, list[str]] = {}
    for word in WORDS.findall(source_of(library)):
        name, _, tag = word.partition(".")
        tags.setdefault(name, []).extend([tag] if tag else [])
    return tags


def source_of(library: str) -> str:
    """The text of all its modules of models."""
    found = find_spec(library)
    origin = None if found is None else found.origin
    assert origin is not None  # both are installed with the package
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(Path(origin).parent.glob("models/*.py")))
