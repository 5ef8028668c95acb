"""Rules that an audit must keep, and the outcome as text, as Markdown, as JUnit XML and as JSON."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from ..errors import SurefootError
from ..metrics import ENDS, SHARE, facts
from ..schemas import parse_number
from .damage import damaged_alike
from .number_names import Number, find_number, good_direction, numbers_in

# Rules that an audit must hold, for other people's CI: `ece < 0.03`, `accuracy: no worse than baseline.json by 0.01`.
#
# Works on the plain values of `audit.json` and imports no torch, so that a check takes no longer than it must.


Audit = Mapping[str, Any]
Compare = Callable[[float, float], bool]
OPERATORS: dict[str, Compare] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
BOUND = re.compile(r"\s*(?P<name>[^\s<>=][^<>=]*?)\s*(?P<sign><=|>=|==|<|>)\s*(?P<bound>\S+)\s*")
RELATIVE = re.compile(r"\s*(?:(?P<name>\S.*?)\s*:\s*)?no worse than\s+(?P<path>.+?)(?:\s+by\s+(?P<slack>\S+))?\s*")
USUAL = (  # what a rule without a name compares
    *("calibration.accuracy", "calibration.ece", "calibration.nll", "calibration.brier"),
    *("corruptions.mean_accuracy", "corruptions.mean_ece", "corruptions.mean_nll"),
)
DEPTHLESS = ("calibration", "temperature", "thresholds", "classes", "groups")  # the same measurement at every depth


@dataclass(frozen=True)
class Rule:
    """A bound on one number, or a bound relative to another audit; `name` is empty for all the usual numbers of that."""

    text: str
    name: str
    sign: str = ""
    bound: float = 0.0
    baseline: str = ""


@dataclass(frozen=True)
class Verdict:
    """One rule judged on one number: what was found, the number that it must keep to, and the number that was judged.

    That is the value, or with `cautious` the worse end of its interval.
    """

    rule: str
    name: str
    found: Number
    sign: str
    bound: float
    holds: bool
    judged: float


def parse_rules(given: Any) -> list[Rule]:
    """The rules of a YAML file: a list, or a list under `rules`."""
    rules = given.get("rules") if isinstance(given, dict) and given.keys() == {"rules"} else given
    if not isinstance(rules, list) or not rules:
        raise SurefootError("Rules must be a list, such as '- ece < 0.03'.")
    return [parse_rule(rule_text(item)) for item in rules]


def rule_text(item: Any) -> str:
    """YAML reads `accuracy: no worse than b.json` as a mapping."""
    if isinstance(item, dict) and len(item) == 1:
        name, rest = next(iter(item.items()))
        return f"{name}: {rest}"
    return str(item)


def parse_rule(text: str) -> Rule:
    """One rule."""
    bound = BOUND.fullmatch(text)
    if bound is not None:
        return Rule(text.strip(), bound["name"], bound["sign"], number_in(text, bound["bound"]))
    relative = RELATIVE.fullmatch(text)
    if relative is not None:
        slack = number_in(text, relative["slack"] or "0")
        if slack < 0:
            raise SurefootError(f"Rule '{text.strip()}' must allow at least 0, got {slack:g}.")
        return Rule(text.strip(), relative["name"] or "", "", slack, relative["path"])
    raise SurefootError(
        f"Rule '{text.strip()}' must be NAME < NUMBER (or <=, >, >=, ==), or NAME: no worse than FILE by NUMBER."
    )


def number_in(rule: str, text: str) -> float:
    number = parse_number(text)
    if not isinstance(number, (int, float)):
        raise SurefootError(f"Rule '{rule.strip()}' needs a number, got '{text}'.")
    return float(number)


def judge(
    rules: Sequence[Rule], audit: Audit, baselines: Mapping[str, Audit] | None = None, *, cautious: bool = False
) -> list[Verdict]:
    """Every rule on an audit; `cautious` takes the worse end of a number's interval. `baselines` are audits by their path."""
    numbers = numbers_in(audit)
    verdicts: list[Verdict] = []
    for rule in rules:
        if not rule.baseline:
            name, number = find_number(rule.name, audit, numbers)
            verdicts.append(settle(rule.text, name, number, rule.sign, rule.bound, cautious))
            continue
        before = (baselines or {})[rule.baseline]
        check_comparable(rule, audit, before)
        theirs = numbers_in(before)
        for wanted in [rule.name] if rule.name else [name for name in USUAL if name in theirs]:
            name, number = find_number(wanted, audit, numbers)
            check_depth(rule, name, audit, before)
            up = good_direction(name) > 0
            old = find_number(wanted, before, theirs)[1].value
            slack = rule.bound if facts(name).unit == SHARE else rule.bound * abs(old)
            bound = old - slack if up else old + slack
            verdicts.append(settle(rule.text, name, number, ">=" if up else "<=", bound, cautious))
    return verdicts


def depth_of(audit: Audit) -> str:
    return str(audit["subject"].get("depth", "predictions"))


def check_comparable(rule: Rule, audit: Audit, before: Audit) -> None:
    """Both audits must be of the same data, split and number of classes."""
    ours, theirs = ((given["subject"]["data"].get("name"), given["subject"]["split"]) for given in (audit, before))
    if ours != theirs:
        said = [f"{split} split of {data or 'unnamed data'}" for data, split in (ours, theirs)]
        raise SurefootError(f"Rule '{rule.text}' compares the {said[0]} with the {said[1]}.")
    mine, other = (len(given["subject"]["classes"]) for given in (audit, before))
    if mine != other:
        raise SurefootError(f"Rule '{rule.text}' compares an audit of {mine} classes with one of {other}.")


def check_depth(rule: Rule, name: str, audit: Audit, before: Audit) -> None:
    """A number that depends on the depth is compared only with one of the same depth."""
    depths = depth_of(audit), depth_of(before)
    same_anyway = name.split(".")[0] in DEPTHLESS and "corrupted" not in name
    if depths[0] != depths[1] and not same_anyway:
        raise SurefootError(f"Rule '{rule.text}' cannot compare {name} at depth {depths[0]} with that at depth {depths[1]}.")
    if not damaged_alike(name, audit, before):
        raise SurefootError(f"Rule '{rule.text}' cannot compare {name}: the two audits saw other corruptions.")


def settle(rule: str, name: str, number: Number, sign: str, bound: float, cautious: bool) -> Verdict:
    """Whether the number, or the worse end of its interval, keeps to the bound."""
    worse = number.high if sign.startswith("<") else number.low
    judged = worse if cautious and worse is not None else number.value
    slip = 1e-12 * max(1.0, abs(bound)) if sign in ("<=", ">=") else 0.0  # 0.92 - 0.01 is not quite 0.91
    near = bound + (slip if sign.startswith("<") else -slip)
    return Verdict(rule, name, number, sign, bound, OPERATORS[sign](judged, near), judged)


# The outcome of a gate as text, as Markdown for a pull request, and as JUnit XML for a CI server.


def shown(verdict: Verdict) -> str:
    """The number that was found, with its interval, and which end of that was judged if one was."""
    number = verdict.found
    interval = "" if number.low is None or number.high is None else f" ({number.low:.4g} to {number.high:.4g})"
    cautious = verdict.judged != number.value
    judged = f", judged by {apart(verdict.judged, verdict.bound)}" if cautious else ""
    return f"{number.value:.4g}{interval}{judged}" if cautious else f"{apart(number.value, verdict.bound)}{interval}"


def apart(value: float, bound: float) -> str:
    """A number with four digits that count, or as many as tell it from its bound."""
    written = (f"{value:.{digits}g}" for digits in range(4, 18))
    return next(
        (text for text in written if (float(text) < bound) == (value < bound) and (float(text) > bound) == (value > bound)),
        f"{value:.4g}",
    )


def summary(verdicts: Sequence[Verdict]) -> str:
    broken = sum(not verdict.holds for verdict in verdicts)
    return f"{broken} of {len(verdicts)} rules broken" if broken else f"all {len(verdicts)} rules hold"


def wanted(verdict: Verdict) -> str:
    return f"{verdict.name} {verdict.sign} {verdict.bound:.6g}"


def as_text(name: str, verdicts: Sequence[Verdict]) -> str:
    """A line for each rule; the broken ones first."""
    lines = [
        f"{'holds ' if verdict.holds else 'BROKEN'}  {verdict.rule}: {wanted(verdict)}, found {shown(verdict)}"
        for verdict in sorted(verdicts, key=lambda verdict: verdict.holds)
    ]
    return "\n".join([*lines, f"{name}: {summary(verdicts)}"]) + "\n"


def as_markdown(name: str, verdicts: Sequence[Verdict]) -> str:
    """A table, the broken rules first."""
    rows = [
        f"| {'holds' if verdict.holds else '**broken**'} | {code(verdict.rule)} | {code(wanted(verdict))} | {shown(verdict)} |"
        for verdict in sorted(verdicts, key=lambda verdict: verdict.holds)
    ]
    head = ["| | rule | must be | found (95 % interval) |", "|---|---|---|---|"]
    return "\n".join([f"### {code(name)}: {summary(verdicts)}", "", *head, *rows]) + "\n"


def code(text: str) -> str:
    """Text in a cell that Markdown leaves alone."""
    return "`" + text.replace("`", "'").replace("|", "\\|") + "`"


def as_junit(name: str, verdicts: Sequence[Verdict]) -> str:
    """A test suite with a case for each rule."""
    broken = sum(not verdict.holds for verdict in verdicts)
    counts = {"tests": str(len(verdicts)), "failures": str(broken), "errors": "0"}
    suite = ElementTree.Element("testsuite", {"name": f"surefoot gate {name}", **counts})
    for verdict in verdicts:
        title = verdict.rule if verdict.rule.startswith(verdict.name) else f"{verdict.rule} ({verdict.name})"
        case = ElementTree.SubElement(suite, "testcase", {"classname": f"surefoot.{name}", "name": title})
        if not verdict.holds:
            said = f"{wanted(verdict)}, found {shown(verdict)}"
            ElementTree.SubElement(case, "failure", {"message": said, "type": "broken"}).text = said
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def as_json(name: str, verdicts: Sequence[Verdict]) -> str:
    """Every rule with what was found, for programs."""
    rows = [
        {
            **{key: getattr(verdict, key) for key in ("rule", "name", "sign", "bound", "judged", "holds")},
            **{key: getattr(verdict.found, key) for key in ENDS},
        }
        for verdict in verdicts
    ]
    return json.dumps({"name": name, "holds": all(verdict.holds for verdict in verdicts), "rules": rows}, indent=1) + "\n"


FORMATS: dict[str, Callable[[str, Sequence[Verdict]], str]] = {
    "text": as_text,
    "github": as_markdown,
    "markdown": as_markdown,
    "junit": as_junit,
    "json": as_json,
}
