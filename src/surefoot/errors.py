"""Errors that a person can act on: one line that names the argument, the rule and the value."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from reprlib import Repr

SHORT = Repr()
SHORT.maxstring = SHORT.maxother = 200
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = SHORT.maxset = 12


class SurefootError(ValueError):
    """Something the user gave cannot be used; the message is one line and says what to do.

    >>> import surefoot as sf
    >>> try:
    ...     sf.load_data("digit")
    ... except sf.SurefootError as error:
    ...     print(error)
    Unknown data set or folder 'digit'. Did you mean 'digits'?
    """


class UnknownName(SurefootError):
    """A name that is not in the list it should come from; the nearest one is suggested."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, list(known)
        super().__init__(f"Unknown {kind} '{brief(name)}'. {suggestion(str(name), map(brief, self.known))}")


class NotFiniteScores(SurefootError):
    """Logits or probabilities with NaN or infinity."""


class NotFound(SurefootError):
    """A file or folder that does not exist; a neighbour with a similar name is suggested."""

    def __init__(self, kind: str, path: str | Path) -> None:
        path = Path(path)
        parent = path.parent
        siblings = [p.name for p in parent.iterdir() if p.name != path.name] if parent.is_dir() else []
        near = get_close_matches(path.name, siblings, n=1, cutoff=0.6)
        hint = f" Did you mean '{parent / near[0]}'?" if near else ""
        super().__init__(f"No {kind} at '{brief(path)}'.{hint}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None if none is close."""
    by_lower = {k.lower().replace("_", "-"): k for k in known if k != name}
    match = get_close_matches(name.lower().replace("_", "-"), by_lower, n=1, cutoff=0.5)
    return by_lower[match[0]] if match else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """A sentence that leads from a wrong name to a right one."""
    known = list(known)
    near = nearest(name, known)
    if near:
        return f"Did you mean '{near}'?"
    if not known:
        return "There are none."
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    return f"Known: {shown}."


def require(condition: bool, argument: str, rule: str, value: object) -> None:
    """Raise the standard one-line error unless `condition` holds."""
    if not condition:
        raise SurefootError(f"{argument} must be {rule}, got {shown(value)}.")


def brief(name: object) -> str:
    """A name in a line, whatever a file calls one."""
    text = " ".join(str(name).split()) if str(name).strip() else str(name)
    return text if len(text) <= SHORT.maxstring else f"{text[: SHORT.maxstring]}..."


def shown(value: object) -> str:
    """A value as Python writes it, but no more of it than a line takes: a file may hold one that is very large."""
    return SHORT.repr(value)


def printable(text: str) -> str:
    """Text without what a terminal would obey: a name may hold such codes. A no-break space of a page is a space there."""
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text)
