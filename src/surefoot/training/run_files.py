"""The files of a run folder, and whether a folder is one: known without torch."""

from __future__ import annotations

from pathlib import Path

from ..errors import NotFound, SurefootError

RECIPE, HISTORY, WEIGHTS, OBJECTIVE = "recipe.yaml", "history.jsonl", "model.safetensors", "objective.safetensors"
CALIBRATION, GUARANTEES = "calibration.safetensors", "guarantees.safetensors"
MODEL = "model.json"  # of a calibrated model from elsewhere, which is no run


def check_run(folder: Path) -> None:
    """That a folder is there and holds a finished run."""
    if not folder.is_dir():
        raise NotFound("run folder", folder)
    if (folder / MODEL).is_file():
        said = f"commands read it; in Python, load_calibrator('{folder / CALIBRATION}').module(model) is the calibrated model"
        raise SurefootError(f"'{folder}' is a calibrated model from elsewhere, not a run: {said}.")
    if not (folder / RECIPE).is_file():
        raise SurefootError(f"'{folder}' is not a run folder: it has no {RECIPE}.")
    if not (folder / WEIGHTS).is_file() and (folder / "state").is_dir():
        raise SurefootError(f"The run in '{folder}' is not finished; the command that started it goes on with it.")
