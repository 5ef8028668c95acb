"""Audits as rows of one table."""

from __future__ import annotations

from collections.abc import Iterable

from ..auditing.result import Audit
from ..types import Estimate

Row = dict[str, Estimate]


def audit_row(audit: Audit) -> Row:
    """The numbers people ask for first."""
    row = {
        "accuracy": audit.calibration.accuracy,
        "ECE": audit.calibration.ece,
        "NLL": audit.calibration.nll,
        "corrupted accuracy": audit.corruptions.mean_accuracy,
    }
    return row | {f"{name} success": found.success_rate for name, found in audit.attacks.items()}


def table(audits: Iterable[tuple[str, Audit]]) -> dict[str, Row]:
    """A row for each audit."""
    return {name: audit_row(audit) for name, audit in audits}
