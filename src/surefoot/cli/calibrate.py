"""`surefoot calibrate`: a copy of a run, of a model from elsewhere, or of predictions, with calibrated confidences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..calibration.arguments import METHODS, SCORES, TUNING
from ..data.arguments import check_data, check_split
from ..errors import NotFound, SurefootError, UnknownName, require
from ..models.arguments import check_device
from ..plain import plain
from ..training.run_files import check_run
from . import options as flag
from .calibrated import is_calibrated, needs_trust, write_calibrated_model
from .targets import check_classes, check_source, check_ways, find_target, is_model

if TYPE_CHECKING:
    from torch import nn

    from ..calibration.calibrators import Calibrator
    from ..calibration.guarantees import Guarantees
    from ..training.runs import Run
    from ..types import Predictions

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@flag.with_blocks
def calibrate(
    *,
    target: Annotated[Path | None, typer.Argument(help="Run folder")] = None,
    source: flag.ModelFlags,
    predictions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead: fit on logits or probabilities in .npz, .csv or .safetensors")
    ] = None,
    apply: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --predictions: the predictions of other images to calibrate")
    ] = None,
    method: Annotated[str, typer.Option(help=", ".join(METHODS.names))] = "temperature",
    split: Annotated[str, typer.Option(help="Split to fit on: calibration or validation")] = "calibration",
    reading: flag.DataFlags,
    prediction_sets: Annotated[
        float | None, typer.Option(metavar="COVERAGE", help="Also sets that hold the right class so often, such as 0.9")
    ] = None,
    set_score: Annotated[str | None, typer.Option(help="lac, aps or raps, with --prediction-sets [default: lac]")] = None,
    by_class: Annotated[bool, typer.Option("--by-class", help="Promise the coverage for each class by itself")] = False,
    risk: Annotated[
        float | None, typer.Option(help="Also the confidence from which at most this share of its answers is wrong")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="How surely --risk is to hold, over draws of the images [default: 0.95]")
    ] = None,
    tuning: Annotated[
        float | None,
        typer.Option(help=f"Share of the images for the calibrator; the rest are for the promises [{TUNING}]"),
    ] = None,
    allow_leakage: Annotated[bool, typer.Option("--allow-leakage", help="Fit on train or test all the same")] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Images at a time")] = 256,
    device: flag.Device = "auto",
    output: Annotated[
        Path | None, typer.Option(help="Folder for the copy, or file with --predictions [default: RUN-METHOD, FILE-METHOD]")
    ] = None,
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Fit a calibrator and write a calibrated copy of the run or model; the weights stay as they are."""
    if method not in METHODS:
        raise UnknownName(METHODS.kind, method, METHODS.names)
    promised = options_of_guarantees(prediction_sets, set_score, by_class, risk, confidence, tuning)
    check_device(device)
    check_split(split)
    if apply is not None and predictions is None:
        raise SurefootError("--apply is for --predictions.")
    for file in (predictions, apply):
        if file is not None and not file.exists():
            raise NotFound("predictions", file)
    if predictions is not None:
        given = flag.given(target=target, **vars(source), **vars(reading), split=None if split == "calibration" else split)
        refused = next(iter(given), "prediction-sets" if promised else None)
        if refused is not None:
            raise SurefootError(f"--predictions takes no {'run folder' if refused == 'target' else '--' + dashed(refused)}.")
        calibrate_predictions(predictions, apply, method, output, json_, quiet)
        return
    check_ways(target, source)
    if split in ("train", "test") and not allow_leakage:
        why = "the model has seen those images" if split == "train" else "its scores there would flatter"
        raise SurefootError(f"--split must be one that neither training nor test uses, got {split}: {why} (--allow-leakage).")
    if target is None or not is_calibrated(target):
        check_source(target, source)
    is_run = target is not None and not is_model(str(target)) and not is_calibrated(target)
    data_options = reading.options()
    if source.data is not None:
        check_data(source.data, data_options.get("root"))
    run = read_run(target, source.allow_code) if target is not None and is_run else None
    if (run is not None and run.calibrator is not None) or is_calibrated(target):
        raise SurefootError(
            f"'{target}' is calibrated already; calibrate the {'run' if run else 'model'} that it was made from."
        )
    from ..auditing.subjects import source_of
    from ..models.classifier import pick_device, predict
    from ..training.runs import copy_folder, write_calibrated

    beside = target.parent / f"{target.resolve().name}-{method}" if target is not None and is_run else None
    folder = output or beside
    if folder is not None:
        folder = copy_folder(run, folder)
    loaded, torch_device = find_target(target, source, data_options), pick_device(device)
    if run is not None:
        check_classes(run, loaded.data)  # a calibrator is of all the classes of a run
    folder = folder or copy_folder(None, loaded.folder.with_name(f"{loaded.folder.name}-{method}"))
    images = loaded.data.split(split)
    if len(images) == 0:
        advice = f"data.{split}" if run is not None else "--split test --allow-leakage fits on the test images"
        raise SurefootError(f"The {split} split has no images to fit a calibrator on ({advice}).")
    before = predict(loaded.model.to(torch_device), images.batches(batch_size), torch_device)
    head = loaded.model if run is None else run.model
    calibrator, guarantees = fit_both(method, before, head, source_of(loaded.data), promised, tuning or TUNING)
    if run is not None:
        write_calibrated(run, calibrator, folder, guarantees)
    else:
        own = replace(source, model=str(target)) if target is not None else source
        write_calibrated_model(folder, own, loaded, calibrator, guarantees)
    shown: dict[str, Any] = {"folder": str(folder), "method": method, "fitted_on": split, "images": len(before)}
    shown |= {"temperature": temperature} if (temperature := getattr(calibrator, "temperature", None)) else {}
    shown |= {"note": calibrator.note} if calibrator.note else {}
    shown |= {} if guarantees is None else guarantees.words
    judged = judge(before, calibrator.calibrate(before, allow_leakage=True))
    if json_:
        print(json.dumps({**shown, **plain(judged)}))
    elif not quiet:
        first = f"{method} {temperature:.4g}" if temperature else method
        print(
            f"{first}, fitted on {len(before)} images of the {split} split; NLL there {judged['nll_before']:.4f} to "
            f"{judged['nll_after']:.4f} (no score: the fit has seen them)"
        )
        for line in promises(guarantees):
            print(line)
        trusted = source.allow_code or (run is None and needs_trust(folder))
        print(f"calibrated copy written to {folder}\nnext: surefoot audit {folder}{' --allow-code' * trusted}")


def read_run(target: Path, allow_code: bool) -> Run:
    """The run in a folder, if one is there."""
    check_run(target)
    from ..training.runs import load_run

    return load_run(target, allow_code=allow_code)


def dashed(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def calibrate_predictions(fitted: Path, apply: Path | None, method: str, output: Path | None, json_: bool, quiet: bool) -> None:
    """Fit on one file of predictions and write those of another, calibrated; without another these, which flatter."""
    if method == "feature-scaling":
        raise SurefootError("The method 'feature-scaling' needs the model, and --predictions are of none.")
    from torch import nn

    from ..calibration.calibrators import fit_calibrator
    from ..types import Predictions

    before, others = Predictions.load(fitted), Predictions.load(apply or fitted)
    if others.num_classes != before.num_classes:
        raise SurefootError(f"--apply must have {before.num_classes} classes as --predictions, got {others.num_classes}.")
    calibrator = fit_calibrator(method, before, nn.Identity())
    path = output or (apply or fitted).with_name(f"{(apply or fitted).stem}-{method}{(apply or fitted).suffix}")
    flag.check_output(path)
    calibrator.calibrate(others, allow_leakage=True).save(path)
    judged = judge(before, calibrator.calibrate(before, allow_leakage=True))
    shown: dict[str, Any] = {"path": str(path), "method": method, "fitted_on": str(fitted), "images": len(before)}
    temperature = getattr(calibrator, "temperature", None)
    shown |= {"temperature": temperature} if temperature else {}
    if json_:
        print(json.dumps({**shown, **plain(judged)}))
    elif not quiet:
        seen = "" if apply is not None else ": the same images, so no score of them is honest"
        print(f"{method}{f' {temperature:.4g}' if temperature else ''}, fitted on {len(before)} images of {fitted}")
        print(f"{len(others)} calibrated predictions written to {path}{seen}")


def judge(before: Any, after: Any) -> dict[str, float]:
    """NLL and accuracy on the images of the fit, which say that it worked and nothing more."""
    from ..calibration.scoring import scores

    both = [scores(given, intervals=0) for given in (before, after)]
    sides = zip(("before", "after"), both, strict=True)
    return {f"{name}_{side}": float(getattr(score, name)) for side, score in sides for name in ("nll", "accuracy")}


def options_of_guarantees(
    coverage: float | None,
    score: str | None,
    by_class: bool,
    risk: float | None,
    confidence: float | None,
    tuning: float | None,
) -> dict[str, Any]:
    """What was asked of `fit_guarantees`, empty for nothing; whatever can be refused is, before a model is read."""
    for name, value in (("--prediction-sets", coverage), ("--risk", risk), ("--confidence", confidence), ("--tuning", tuning)):
        require(value is None or 0 < value < 1, name, "between 0 and 1", value)
    if coverage is None and (score is not None or by_class):
        raise SurefootError("--set-score and --by-class are for --prediction-sets.")
    if score is not None and score not in SCORES:
        raise UnknownName("score of prediction sets", score, SCORES)
    if risk is None and confidence is not None:
        raise SurefootError("--confidence is for --risk.")
    if coverage is None and risk is None:
        if tuning is not None:
            raise SurefootError("--tuning is for --prediction-sets and --risk.")
        return {}
    given = flag.given(coverage=coverage, score=score, risk=risk, confidence=confidence)
    return {**given, "by_class": by_class}


def fit_both(
    method: str, predictions: Predictions, model: nn.Module, data: str, promised: dict[str, Any], tuning: float
) -> tuple[Calibrator, Guarantees | None]:
    """The calibrator, and what is promised behind it, from images that the calibrator has not seen.

    The calibrator then says that it has seen all of them, so that the copy is not audited on any.
    """
    from ..calibration.calibrators import FittedOn, fit_calibrator
    from ..calibration.disjoint import parted
    from ..calibration.guarantees import fit_guarantees

    if not promised:
        return fit_calibrator(method, predictions, model, data), None
    first, rest = parted(predictions, tuning, seed=0)
    calibrator = fit_calibrator(method, first, model, data)
    tuned, others = calibrator.calibrate(first, allow_leakage=True), calibrator.calibrate(rest)
    guarantees = fit_guarantees(others, tuned, **promised)
    return replace(calibrator, fitted_on=replace(FittedOn.of(predictions), data=data)), guarantees


def promises(guarantees: Guarantees | None) -> list[str]:
    """What is promised, a line each."""
    said = []
    if guarantees is not None and (sets := guarantees.prediction_sets) is not None:
        whom = "each class" if sets.by_class else "all images"
        said.append(
            f"prediction sets ({sets.score.score}): coverage {sets.coverage:g} of {whom}, from {sets.images} other images"
        )
        said += [sets.note] if sets.note else []
    if guarantees is not None and (bound := guarantees.risk_threshold) is not None:
        promise = f"at most {100 * bound.risk:.3g} % wrong with probability {bound.confidence:g}"
        sentence = f"answers alone from confidence {bound.threshold} on: {promise}, from {bound.images} other images"
        said.append(sentence if bound.threshold is not None else bound.note)
    return said
