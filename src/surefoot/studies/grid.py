"""Train and audit a list of recipes, and their audits as rows of one table."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..auditing.audit import audit
from ..auditing.result import Audit
from ..files import inside
from ..measurements.temperatures import source_in
from ..metrics import path_label
from ..training.recipes import Recipe
from ..types import Estimate

# Audits as rows of one table.


Row = dict[str, Estimate]


FIRST = ("calibration.accuracy", "calibration.ece", "calibration.nll", "corruptions.mean_accuracy", "corruptions.mean_ece")
COLUMNS = {path_label(path): path for path in FIRST}  # what people ask for first, and where an audit holds it


def audit_row(audit: Audit) -> Row:
    """The numbers people ask for first."""
    row: Row = {column: attrgetter(path)(audit) for column, path in COLUMNS.items()}
    return row | {path_label(f"attacks.{name}.success_rate"): result.success_rate for name, result in audit.attacks.items()}


def table(audits: Iterable[tuple[str, Audit]]) -> dict[str, Row]:
    """A row for each audit."""
    return {name: audit_row(audit) for name, audit in audits}


# Train and audit a list of recipes.


logger = logging.getLogger(__name__)


def run_grid(
    recipes: Mapping[str, Recipe],
    output: str | Path,
    *,
    device: str = "auto",
    overwrite: bool = False,
    progress: bool = True,
) -> Iterator[tuple[str, Audit]]:
    """Each recipe in its own folder below `output`, trained and audited, one after the other."""
    for name, recipe in recipes.items():
        folder = inside(output, name)
        if progress:
            logger.info("training %s", name)
        run = recipe.run(output=folder, device=device, overwrite=overwrite, progress=progress)
        data = recipe.load_data()
        options: dict[str, Any] = {"seed": recipe.seed, "device": device, "output": folder, "progress": progress}
        options["provenance"] = {"recipe": recipe.to_yaml()}
        yield name, audit(run.predictor, data, name=name, calibrate_on=source_in(data), **options)
