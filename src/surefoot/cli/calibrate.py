"""`surefoot calibrate`: a copy of a run whose confidences are calibrated on its calibration split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..auditing.subjects import source_of
from ..calibration.calibrators import METHODS, fit_calibrator
from ..calibration.scoring import Scores, scores
from ..errors import SurefootError, UnknownName
from ..models.classifier import pick_device, predict
from ..plain import plain
from ..training.runs import copy_folder, load_run, write_calibrated
from . import options as flag
from .targets import check_classes, data_of_run

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@flag.with_blocks
def calibrate(
    *,
    target: Annotated[Path, typer.Argument(help="Run folder")],
    allow_code: flag.AllowCode = False,
    method: Annotated[str, typer.Option(help=", ".join(METHODS.names))] = "temperature",
    split: Annotated[str, typer.Option(help="Split to fit on: calibration or validation")] = "calibration",
    data: Annotated[str | None, typer.Option(help="Name, folder or .npz [default: the run's own]")] = None,
    reading: flag.DataFlags,
    allow_leakage: Annotated[bool, typer.Option("--allow-leakage", help="Fit on train or test all the same")] = False,
    batch_size: Annotated[int, typer.Option(help="Images at a time")] = 256,
    device: flag.Device = "auto",
    output: Annotated[Path | None, typer.Option(help="Folder for the copy [default: beside the run, RUN-METHOD]")] = None,
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Fit a calibrator and write a calibrated copy of the run; the weights stay as they are."""
    if method not in METHODS:
        raise UnknownName(METHODS.kind, method, METHODS.names)
    run = load_run(target, allow_code=allow_code)
    if run.calibrator is not None:
        raise SurefootError(f"'{target}' is calibrated already; calibrate the run that it was made from.")
    if split in ("train", "test") and not allow_leakage:
        why = "the model has seen those images" if split == "train" else "its scores there would flatter"
        raise SurefootError(f"--split must be one that neither training nor test uses, got {split}: {why} (--allow-leakage).")
    folder = copy_folder(run, output or target.parent / f"{target.resolve().name}-{method}")
    data_options = reading.options()
    dataset, torch_device = data_of_run(run, target, data, data_options), pick_device(device)
    check_classes(run.class_names, dataset.class_names)
    if len(dataset.split(split)) == 0:
        raise SurefootError(f"The {split} split has no images to fit a calibrator on (data.{split}).")
    bare = run.predictor.to(torch_device)
    before = predict(bare, dataset.split(split).batches(batch_size), torch_device)
    calibrator = fit_calibrator(method, before, run.model, source_of(dataset))
    copy = write_calibrated(run, calibrator, folder)
    shown: dict[str, Any] = {"folder": str(copy.folder), "method": method, "fitted_on": split, "images": len(before)}
    shown |= {"temperature": temperature} if (temperature := getattr(calibrator, "temperature", None)) else {}
    shown |= {"note": calibrator.note} if calibrator.note else {}
    judged = judge(before, calibrator.calibrate(before, allow_leakage=True))
    if json_:
        print(json.dumps({**shown, **plain(judged)}))
    elif not quiet:
        first = f"{method} {temperature:.4g}" if temperature else method
        print(
            f"{first}, fitted on {len(before)} images of the {split} split; NLL there {judged['nll_before']:.4f} to "
            f"{judged['nll_after']:.4f} (no score: the fit has seen them)"
        )
        print(f"calibrated copy written to {copy.folder}\nnext: surefoot audit {copy.folder}{' --allow-code' * allow_code}")


def judge(before: Any, after: Any) -> dict[str, float]:
    """NLL and accuracy on the images of the fit, which say that it worked and nothing more."""
    both: list[Scores] = [scores(given, intervals=0) for given in (before, after)]
    sides = zip(("before", "after"), both, strict=True)
    return {f"{name}_{side}": float(getattr(score, name)) for side, score in sides for name in ("nll", "accuracy")}
