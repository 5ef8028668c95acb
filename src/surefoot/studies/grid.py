"""Train and audit a list of recipes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..auditing.audit import audit
from ..auditing.result import Audit
from ..files import inside
from ..training.recipes import Recipe

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
        yield name, audit(run.predictor, data, name=name, calibrate_on="calibration", **options)
