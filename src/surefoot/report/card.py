"""A run as a folder to push to the Hugging Face hub: its files, and a model card with the numbers of its audit."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..auditing.number_names import Number, check_audit, numbers_in
from ..errors import NotFound, SurefootError, require
from ..files import only_writer, read_json, write_json, write_text
from ..metrics import SHARE, of_path
from ..training.run_files import CALIBRATION, GUARANTEES, HISTORY, OBJECTIVE, RECIPE, WEIGHTS, check_run

if TYPE_CHECKING:
    from ..training.runs import Run

CARD, CONFIG = "README.md", "config.json"
WORD = re.compile(r"\w[\w.-]{0,95}")
SHOWN = (  # on the card and in its metadata, with every attack
    *("calibration.accuracy", "calibration.ece", "calibration.nll", "calibration.brier"),
    *("corruptions.mean_accuracy", "corruptions.mean_ece"),
)
Numbers = dict[str, Number]


def write_card(
    run: str | Path, output: str | Path, *, name: str | None = None, license: str | None = None, allow_code: bool = False
) -> Path:
    """Write a folder that can be pushed as it is: weights, config, recipe, calibration, and a card with the audit's numbers.

    Where the data lie is left out of the recipe. `name` is the run's folder if not given. What was pushed is read by
    `sf.load_run("hf://owner/name")`.

    >>> import surefoot as sf
    >>> data = sf.load_data("digits", fraction=0.2, max_images=60)
    >>> model = sf.load_model("tiny-resnet", data=data, seed=0)
    >>> run = sf.fit(model, "cross-entropy", data, epochs=1, output="runs/first", progress=False)
    >>> folder = sf.write_card("runs/first", "pushed", license="apache-2.0")
    >>> "license: apache-2.0" in (folder / "README.md").read_text().splitlines()
    True
    """
    folder = Path(run)
    name = card_name(folder, name)
    require(license is None or WORD.fullmatch(license) is not None, "license", "a name of the hub, such as apache-2.0", license)
    check_run(folder)
    from ..training.runs import copy_folder, load_run

    loaded = load_run(folder, allow_code=allow_code)
    if loaded.recipe.model is None:
        raise SurefootError(f"The model of '{folder}' came from Python and has no name, so that nobody could read it back.")
    audit, numbers = read_numbers(folder)
    with only_writer(output):
        target = copy_folder(loaded, output)
        for file in (OBJECTIVE, CALIBRATION, GUARANTEES, HISTORY):
            if (folder / file).is_file():
                shutil.copyfile(folder / file, target / file)
        write_text(target / RECIPE, replace(loaded.recipe, data=without_paths(loaded.recipe.data)).to_yaml())
        write_json(target / CONFIG, config_of(loaded))
        write_text(target / CARD, card(name, loaded, audit, numbers, license))
        shutil.copyfile(folder / WEIGHTS, target / WEIGHTS)  # last: they mark a run that is whole
    return target


def card_name(folder: Path, name: str | None) -> str:
    """What the model is called: a word that the hub takes."""
    if name is None:
        return re.sub(r"[^\w.-]", "-", folder.resolve().name).lstrip(".-") or "run"
    require(WORD.fullmatch(name) is not None, "name", "letters, digits, '.', '-' and '_', at most 96", name)
    return name


def read_numbers(folder: Path) -> tuple[dict[str, Any] | None, Numbers]:
    """The audit in a run's folder and what the card shows of it."""
    path = folder / "audit.json"
    try:
        audit = check_audit(path, read_json("audit", path))
    except NotFound:
        return None, {}
    known = numbers_in(audit)
    attacks = [f"attacks.{attack}.success_rate" for attack in audit.get("attacks") or ()]
    return audit, {path: known[path] for path in (*SHOWN, *attacks) if path in known}


def without_paths(data: dict[str, Any] | None) -> dict[str, Any] | None:
    """The data of a recipe without where they lie on this machine."""
    if data is None:
        return None
    path = Path(data["name"])
    return {**data, "root": None, "name": path.name if path.is_absolute() else data["name"]}


def config_of(run: Run) -> dict[str, Any]:
    """What other programs ask of a model."""
    model = run.model
    return {
        "library_name": "surefoot",
        "architecture": (run.recipe.model or {})["name"],
        "objective": run.recipe.objective["name"],
        "num_classes": model.num_classes,
        "id2label": {str(index): label for index, label in enumerate(run.class_names)},
        "channels": model.channels,
        "image_size": list(model.image_size),
        "mean": model.mean.flatten().tolist(),
        "std": model.std.flatten().tolist(),
        "calibrated": run.calibrator is not None,
    }


def metadata(name: str, run: Run, audit: dict[str, Any] | None, numbers: Numbers, license: str | None) -> str:
    """The YAML at the head of the card; `model-index` has the audit's numbers."""
    from huggingface_hub import EvalResult, ModelCardData

    given = (without_paths(run.recipe.data) or {}).get("name") or "own data"
    split = None if audit is None else audit["subject"]["split"]
    task: dict[str, Any] = {
        "task_type": "image-classification",
        "dataset_type": given,
        "dataset_name": given,
        "dataset_split": split,
    }
    results = [
        EvalResult(**task, metric_type=path.removeprefix("calibration."), metric_name=label(path), metric_value=number.value)
        for path, number in numbers.items()
    ]
    tags = ["image-classification", "calibration", "robustness", run.recipe.objective["name"]]
    about: dict[str, Any] = {"library_name": "surefoot", "pipeline_tag": "image-classification", "tags": tags}
    about |= {"license": license} if license else {}
    about |= {"model_name": name, "eval_results": results} if results else {}
    return str(ModelCardData(**about).to_yaml())


def card(name: str, run: Run, audit: dict[str, Any] | None, numbers: Numbers, license: str | None) -> str:
    """The whole card."""
    recipe = run.recipe
    lines = ["---", metadata(name, run, audit, numbers, license), "---", "", f"# {code(name)}", ""]
    size = " x ".join(str(side) for side in run.model.image_size)
    data = (without_paths(recipe.data) or {}).get("name") or "own data"
    lines += [f"A {code((recipe.model or {})['name'])} for {run.model.num_classes} classes and images of {size} pixels,"]
    lines += [f"trained by Surefoot on {code(data)} with {code(recipe.objective['name'])}, seed {recipe.seed}."]
    if run.calibrator is not None:
        lines += ["Its confidences are calibrated (`calibration.safetensors`)."]
    lines += ["", "```python", "import surefoot as sf", "", 'run = sf.load_run("hf://OWNER/NAME")']
    lines += ["answers = run.answer(images)  # pixels in [0, 1], batch x channel x height x width", "```", ""]
    if audit is None:
        return "\n".join([*lines, "It has not been audited.", ""])
    subject = audit["subject"]
    lines += [f"## Audit of {subject.get('images', 'the')} images of the {code(subject['split'])} split", ""]
    lines += ["| | value | 95 % interval |", "|---|---|---|"]
    lines += [f"| {label(path)} | {shown(path, number.value)} | {interval(path, number)} |" for path, number in numbers.items()]
    return "\n".join([*lines, ""])


def label(path: str) -> str:
    """What a number is called, with the name of its attack."""
    words = path.split(".")
    where = {"attacks": f"{code(words[1])} ", "corruptions": "corrupted: "}.get(words[0], "")
    return where + of_path(path).label


def shown(path: str, value: float) -> str:
    facts = of_path(path)
    return f"{facts.factor * value:.{facts.digits}f}" + (" %" if facts.unit == SHARE else "")


def interval(path: str, number: Number) -> str:
    known = number.low is not None and number.high is not None
    return f"{shown(path, number.low or 0.0)} to {shown(path, number.high or 0.0)}" if known else "-"


def code(text: str) -> str:
    """Text that Markdown leaves alone."""
    return "`" + json.dumps(text, ensure_ascii=False)[1:-1].replace("`", "'").replace("|", "\\|") + "`"
