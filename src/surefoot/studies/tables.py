"""Audits as rows of one table."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from ..auditing.result import Audit
from ..types import Estimate

Row = dict[str, Estimate]


COLUMNS = {  # what people ask for first, and where an audit holds it
    "accuracy": "calibration.accuracy",
    "ECE": "calibration.ece",
    "NLL": "calibration.nll",
    "corrupted accuracy": "corruptions.mean_accuracy",
    "corrupted ECE": "corruptions.mean_ece",
}


def audit_row(audit: Audit) -> Row:
    """The numbers people ask for first."""
    row: Row = {column: attrgetter(path)(audit) for column, path in COLUMNS.items()}
    return row | {f"{name} success": found.success_rate for name, found in audit.attacks.items()}


def table(audits: Iterable[tuple[str, Audit]]) -> dict[str, Row]:
    """A row for each audit."""
    return {name: audit_row(audit) for name, audit in audits}
