"""Tables from a name to an object that is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .errors import SurefootError, UnknownName


@dataclass(frozen=True)
class Entry:
    """One row: the name people type, where the object is (`module:attribute`), and a line of help."""

    name: str
    target: str
    help: str


class Registry:
    """A frozen table of entries of one kind; importing it imports none of them."""

    def __init__(self, kind: str, rows: Iterable[tuple[str, str, str]]) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}
        for name, target, help in rows:
            if name in self._entries:
                raise SurefootError(f"{kind} '{name}' is registered twice.")
            self._entries[name] = Entry(name, target, help)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    @property
    def names(self) -> list[str]:
        return list(self._entries)

    def load(self, name: str) -> Any:
        """The object called `name`, or the user's own as `package.module:attribute`."""
        if name in self._entries:
            return import_target(self.kind, self._entries[name].target)
        if ":" in name:
            return import_target(self.kind, name)
        raise UnknownName(self.kind, name, self.names)

    def name_of(self, target: type) -> str:
        """The registered name of a class, or its `module:Class`."""
        path = f"{target.__module__}:{target.__qualname__}"
        return next((e.name for e in self if e.target == path), path)


def import_target(kind: str, target: str) -> Any:
    """Import `package.module:attribute`."""
    module_name, _, attribute = target.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), attribute)):
        raise SurefootError(f"{kind} '{target}' must be package.module:attribute.")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise SurefootError(f"{kind} '{target}' needs a module '{module_name}', which cannot be imported.") from error
    if not hasattr(module, attribute):
        raise UnknownName(f"attribute of {module_name}", attribute, [n for n in dir(module) if not n.startswith("_")])
    return getattr(module, attribute)
