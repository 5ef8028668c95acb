"""Names of the numbers in an `audit.json`: short ones, what is nearest to a wrong one, which depth measures a missing one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import SurefootError, UnknownName, shown, suggestion
from ..measurements.base import SHIFT
from ..metrics import ENDS, NEITHER, facts, of_path, range_of
from ..schemas import parse_number
from .frames import Words, leaves
from .migration import migrate

SUBJECT: dict[str, type] = {"name": str, "data": dict, "split": str, "classes": list}  # what every audit says of itself
SLIP = 1e-6  # of sums in single precision
PROMISED = ("coverage", "set_size", "risk", "answered")
CONDITIONS = "promises.conditions."
FRACTION = re.compile(r"\d+(?:\.\d+)?/\d+")


@dataclass(frozen=True)
class Number:
    """A value with its interval, where it has one; `words` is how many its path has."""

    value: float
    low: float | None = None
    high: float | None = None
    words: int = field(default=0, compare=False, repr=False)


def numbers_in(audit: Mapping[str, Any]) -> dict[str, Number]:
    """Every number of an audit by its path, such as `corruptions.cells.gaussian_noise.3.accuracy`."""
    numbers = leaves(measured(audit))
    return {".".join(words): Number(value, low, high, count(words)) for words, value, low, high in numbers if value is not None}


def check_audit(path: str | Path, content: Any) -> dict[str, Any]:
    """The content of an `audit.json` in today's schema, if it can be read and its numbers can be what they are called."""
    audit = migrate(path, content)
    subject = audit["subject"] if isinstance(audit.get("subject"), dict) else {}
    wrong = next((name for name, kind in SUBJECT.items() if not isinstance(subject.get(name), kind)), None)
    if wrong is not None:
        raise SurefootError(f"'{path}' does not say what it is of: subject.{wrong} is missing.")
    for words, *ends in leaves(measured(audit)):
        name = ".".join(words)
        low, high = range_of(name)
        for end in ends:
            number = isinstance(end, int | float) and not isinstance(end, bool)
            if end is not None and not (number and low - SLIP <= end <= high + SLIP):
                raise SurefootError(f"'{path}': {name} must be {in_words(low, high)}, got {shown(end)}.")
        if ends[1] is not None and ends[2] is not None and ends[1] > ends[2] + SLIP:
            raise SurefootError(f"'{path}': the interval of {name} ends before it begins, {ends[1]:g} to {ends[2]:g}.")
    return audit


def in_words(low: float, high: float) -> str:
    """A range as a rule."""
    if math.isinf(low):
        return "a number"
    return f"at least {low:g}" if math.isinf(high) else f"in {low:g} to {high:g}"


def count(words: Words) -> int:
    """How long a path is; the dots of a measurement or attack of one's own, `package.module:name`, part no words."""
    return sum(1 if ":" in word else 1 + word.count(".") for word in words)


def measured(audit: Mapping[str, Any]) -> dict[str, Any]:
    """What an audit measured, without what it is of."""
    parts = {name: part for name, part in audit.items() if name not in ("schema", "subject", "points")}
    if "preflight" in parts:  # how many findings of each severity; older audits did not say it
        found = Counter(finding.get("severity", "warning") for finding in parts["preflight"])
        parts["preflight"] = {severity: found[severity] for severity in ("fatal", "warning", "note")}
    for name, rows in (("worst_class", parts.get("classes")), ("worst_group", parts.get("groups"))):
        known = [row["accuracy"] for row in rows or () if row["accuracy"] is not None]
        if known:
            parts[name] = {"accuracy": min(known, key=lambda accuracy: accuracy["value"])}
    return parts


def find_number(name: str, audit: Mapping[str, Any], numbers: Mapping[str, Number] | None = None) -> tuple[str, Number]:
    """The whole path and the number that `name` stands for; `.low` and `.high` are the ends of its interval."""
    numbers = numbers_in(audit) if numbers is None else numbers
    name = under_condition(name, numbers)
    stem, _, end = name.rpartition(".")
    path = resolve(name, numbers)
    if path is not None:
        return path, numbers[path]
    if end in ENDS and (path := resolve(stem, numbers)) is not None:
        bound = getattr(numbers[path], end)
        if bound is None:
            raise SurefootError(f"'{path}' has no interval, so '{name}' is not defined.")
        return f"{path}.{end}", Number(bound)
    raise SurefootError(why_missing(stem if end in ENDS else name, audit, numbers))


def under_condition(name: str, numbers: Mapping[str, Number]) -> str:
    """`risk@fog/3` as the path of a promise under a condition; other names as they are."""
    number, at, condition = name.partition("@")
    if not at:
        return name
    known = [path.removeprefix(CONDITIONS).rpartition(".") for path in numbers if path.startswith(CONDITIONS)]
    number, dot, end = number.strip().partition(".")
    if condition.strip().startswith(SHIFT) and number not in PROMISED:
        return f"measurements.shift.{condition.strip().removeprefix(SHIFT)}.{number}{dot}{end}"
    if condition.strip() not in {place for place, _, _ in known}:
        raise UnknownName("condition of this audit", condition.strip(), dict.fromkeys(place for place, _, _ in known))
    if number not in PROMISED:
        raise UnknownName("number under a condition", number, PROMISED)
    return f"{CONDITIONS}{condition.strip()}.{number}{dot}{end}"


def resolve(name: str, numbers: Mapping[str, Number]) -> str | None:
    """A path as it stands, a score of the clean images, or the shortest path that goes through these words in their order.

    A number of a measurement of one's own may go without `measurements`, and quotes around its label are no part of it.
    """
    name = name.replace('"', "")
    for path in (name, f"calibration.{name}", f"measurements.{name}"):
        if path in numbers:
            return path
    name = with_levels(name)
    parts = name.split(".")
    matches = [path for path in numbers if goes_through(path.split("."), parts)]
    if not matches:
        return None
    fewest = min(numbers[path].words for path in matches)
    best = [path for path in matches if numbers[path].words == fewest]
    if len(best) > 1:
        raise SurefootError(f"'{name}' may be any of {len(best)} numbers; the first are {', '.join(best[:3])}.")
    return best[0]


def with_levels(name: str) -> str:
    """`noise.gaussian.4/255.accuracy` with the level as the path has it."""
    return FRACTION.sub(lambda match: str(parse_number(match[0])), name)


def goes_through(path: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the words stand in the path in this order: the last at its end, the first of several at its start."""
    if path[-1] != words[-1] or (len(words) > 1 and path[0] != words[0]):
        return False
    left = iter(path)
    return all(word in left for word in words)


def good_direction(name: str) -> int:
    """1 where more is better, -1 where less is."""
    own = name.startswith("measurements.")  # whose numbers nobody needs to know
    better = (facts if own else of_path)(name).better
    if better != NEITHER:
        return better
    last = [part for part in name.split(".") if part not in ENDS][-1]
    raise SurefootError(f"Neither more nor less of '{name}' is known to be better; give a bound, such as {last} < 1.")


def why_missing(name: str, audit: Mapping[str, Any], numbers: Mapping[str, Number]) -> str:
    """One line: not defined here, measured at another depth, or unknown with the nearest name."""
    depth = audit["subject"].get("depth")
    if empty_at(name, audit):
        return f"'{name}' is not defined in this audit."
    if depth is None:
        if name.split(".")[0] in ("corruptions", "noise", "occlusions", "attacks", "security_curve"):
            return f"'{name}' needs the model, and this audit is of predictions alone."
    elif measured := depths_with(name):
        if depth not in measured:
            return f"'{name}' is not measured at depth {depth}: surefoot audit --depth {measured[0]} does."
        return f"'{name}' belongs to depth {depth}, and this audit does not have it."
    return f"Unknown number '{name}'. {suggestion(name, short_names(numbers))}"


def empty_at(name: str, audit: Mapping[str, Any]) -> bool:
    """Whether a name stands for a number that was not defined."""
    undefined = {
        ".".join(words): Number(math.nan, words=count(words)) for words, value, *_ in leaves(measured(audit)) if value is None
    }
    return resolve(name, undefined) is not None


def short_names(numbers: Mapping[str, Number]) -> list[str]:
    """How people would write the paths, for suggestions."""
    short = (path.removeprefix("calibration.").removeprefix("measurements.") for path in numbers)
    return [path.replace("corruptions.cells.", "corruptions.") for path in short]


def depths_with(name: str) -> list[str]:
    """The depths that measure it, quickest first."""
    from .depths import DEPTHS

    head = with_levels(name).rpartition(".")[0]
    return [depth.name for depth in DEPTHS.values() if head in conditions_of(depth.measure)]


def conditions_of(measure: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The conditions under which a depth measures scores."""
    from ..measurements.registry import check_measure  # imports torch, which only an error needs

    for label, options in measure.items():
        kind, own = check_measure(label, options)
        if kind == "attacks":
            yield from (f"attacks.{name}" for name in own["names"])
        elif kind == "corruptions":
            for name in own["names"]:
                for severity in own["severities"]:
                    yield f"corruptions.{name}.{severity:g}"
                    yield f"corruptions.cells.{name}.{severity:g}"
        elif kind == "occlusions":
            yield from (f"occlusions.{name}.{own['severity']:g}" for name in own["kinds"])
        elif kind == "noise":
            yield from (f"noise.{own['distribution']}.{level / 255:.16g}" for level in own["levels"])
        elif kind == "security-curve":
            yield from (f"security_curve.{budget / 255:.16g}" for budget in own["budgets"])
