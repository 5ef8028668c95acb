"""Tables from a name to an object that is imported when it is first needed.

Where a table allows it, the user's own `package.module:attribute` is a name too. Importing it runs code, so a file may hold
such a name only if the user trusts the file: whoever reads names from a file calls `refuse_code` before one of them is used.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from .errors import SurefootError, UnknownName

UNNAMED = "python:"  # begins the name of an object that came from Python; it says what it was and cannot be imported
TRUST = "pass --allow-code (allow_code=True)"
_searching_current_folder = False


@dataclass(frozen=True)
class Entry:
    """One row: the name people type, where the object is (`module:attribute`), and a line of help."""

    name: str
    target: str
    help: str


@dataclass(frozen=True)
class Own:
    """What an object of the user's own must be to stand in a table, in words and as a check."""

    rule: str
    holds: Callable[[Any], bool]


def takes(count: int) -> Callable[[Any], bool]:
    """A check of functions of one's own: whether one can be called with so many arguments."""

    def holds(target: Any) -> bool:
        if not callable(target) or isinstance(target, type):
            return False
        try:
            inspect.signature(target).bind(*[None] * count)
        except (TypeError, ValueError):  # it takes others, or does not say what it takes
            return False
        return True

    return holds


class Registry:
    """A frozen table of entries of one kind; importing it imports none of them. Without `own` its names are all there are.

    Installed packages add rows by entry points of `group`; they are looked up when a name is not one of ours.
    """

    def __init__(
        self, kind: str, rows: Iterable[tuple[str, str, str]], own: Own | None = None, group: str | None = None
    ) -> None:
        self.kind, self.own, self.group = kind, own, group
        self._rows: dict[str, Entry] = {}
        for name, target, help in rows:
            if name in self._rows:
                raise SurefootError(f"{kind} '{name}' is registered twice.")
            self._rows[name] = Entry(name, target, help)

    @property
    def ours(self) -> list[str]:
        """The names that this package has."""
        return list(self._rows)

    @cached_property
    def _entries(self) -> dict[str, Entry]:
        """Our rows, and those of installed packages."""
        entries = dict(self._rows)
        for point in entry_points(group=self.group) if self.group else ():
            if point.name in entries:
                raise SurefootError(f"{self.kind} '{point.name}' of '{point.value}' is registered twice.")
            by = point.dist.name if point.dist is not None else point.module
            entries[point.name] = Entry(point.name, point.value, f"from {by}")
        return entries

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, name: object) -> bool:
        return name in self._rows or name in self._entries

    @property
    def names(self) -> list[str]:
        return list(self._entries)

    def check(self, name: str) -> None:
        """Refuse a name that is neither in the table nor the user's own; nothing is imported."""
        if name not in self and (self.own is None or ":" not in name):
            raise UnknownName(self.kind, name, self.names)

    def target_of(self, name: str) -> str:
        """Where the object of one of our names is: `module:attribute`."""
        return self._rows[name].target

    def load(self, name: str) -> Any:
        """The object called `name`, or the user's own as `package.module:attribute`, if it is of the right kind."""
        self.check(name)
        if name in self._rows:
            return import_target(self.kind, self._rows[name].target)
        known = self._entries.get(name)
        target = import_own(self.kind, name) if known is None else import_target(self.kind, known.target)
        if self.own is not None and not self.own.holds(target):
            raise SurefootError(f"{self.kind} '{name}' must be {self.own.rule}.")
        return target

    def name_of(self, target: type) -> str:
        """The registered name of a class, or its `module:Class`."""
        path = f"{target.__module__}:{target.__qualname__}"
        return next((e.name for e in self if e.target == path), path)


def is_code(name: str) -> bool:
    """Whether a name is `package.module:attribute`: nothing else is ever imported."""
    module_name, _, attribute = name.partition(":")
    return all(part.isidentifier() for part in (*module_name.split("."), attribute))


def code_in(content: Any) -> str | None:
    """The first name of code anywhere in plain content, in a chain of names too."""
    if isinstance(content, Mapping):
        content = [*content.keys(), *content.values()]
    if isinstance(content, str):
        names = [] if content.startswith(UNNAMED) else map(str.strip, content.split("+"))
        return next((name for name in names if is_code(name)), None)
    if isinstance(content, Iterable):
        return next(filter(None, map(code_in, content)), None)
    return None


def refuse_code(source: str, content: Any) -> None:
    """Refuse content of a file that names code; `source` says which file."""
    if code := code_in(content):
        raise SurefootError(f"{source} names code, '{code}': if it is yours or you trust it, {TRUST}.")


def import_own(kind: str, target: str) -> Any:
    """Import an object of the user's own; a command searches the current folder for it, after everything that is installed."""
    if target.startswith(UNNAMED):
        raise SurefootError(f"{kind} '{target}' came from Python and cannot be made from its name; pass it in again.")
    if _searching_current_folder and (folder := os.getcwd()) not in sys.path:
        sys.path.append(folder)
    return import_target(kind, target)


def import_file(kind: str, target: str) -> Any:
    """Import `path/file.py:attribute`, which only somebody at a command may name: `is_code` does not know it in files."""
    path, _, attribute = target.rpartition(":")
    if not os.path.isfile(path):
        raise SurefootError(f"{kind} '{target}' names a file that is not there, '{path}'.")
    name = f"surefoot_own_{os.path.basename(path).removesuffix('.py')}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    sys.path.append(os.path.dirname(os.path.abspath(path)))  # what it imports from beside itself
    spec.loader.exec_module(module)
    if not hasattr(module, attribute):
        raise UnknownName(f"attribute of {path}", attribute, [n for n in dir(module) if not n.startswith("_")])
    return getattr(module, attribute)


def search_current_folder() -> None:
    """Let `import_own` find modules in the current folder: for commands, where a script would have its own folder."""
    global _searching_current_folder
    _searching_current_folder = True


def import_target(kind: str, target: str) -> Any:
    """Import `package.module:attribute`."""
    if not is_code(target):
        kinds = "FILE.py:NAME or package.module:NAME" if kind == "import" else "package.module:attribute"
        raise SurefootError(f"{kind} '{target}' must be {kinds}.")
    module_name, _, attribute = target.partition(":")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise SurefootError(f"{kind} '{target}' needs a module '{module_name}', which cannot be imported.") from error
    if not hasattr(module, attribute):
        raise UnknownName(f"attribute of {module_name}", attribute, [n for n in dir(module) if not n.startswith("_")])
    return getattr(module, attribute)
