"""Audits as rows of one table."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from ..auditing.result import Audit
from ..metrics import path_label
from ..types import Estimate

Row = dict[str, Estimate]


FIRST = ("calibration.accuracy", "calibration.ece", "calibration.nll", "corruptions.mean_accuracy", "corruptions.mean_ece")
COLUMNS = {path_label(path): path for path in FIRST}  # what people ask for first, and where an audit holds it


def audit_row(audit: Audit) -> Row:
    """The numbers people ask for first."""
    row: Row = {column: attrgetter(path)(audit) for column, path in COLUMNS.items()}
    return row | {path_label(f"attacks.{name}.success_rate"): found.success_rate for name, found in audit.attacks.items()}


def table(audits: Iterable[tuple[str, Audit]]) -> dict[str, Row]:
    """A row for each audit."""
    return {name: audit_row(audit) for name, audit in audits}
