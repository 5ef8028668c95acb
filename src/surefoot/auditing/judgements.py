"""The outcome of a gate as text, as Markdown for a pull request, and as JUnit XML for a CI server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree import ElementTree

from .gating import Verdict


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


FORMATS: dict[str, Callable[[str, Sequence[Verdict]], str]] = {"text": as_text, "markdown": as_markdown, "junit": as_junit}
