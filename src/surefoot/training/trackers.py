"""What a tracker is told: the names of project and run, the recipe, every term of the objective, an audit's numbers and page.

accelerate speaks to a tracker during training. A run remembers what it is called there (`tracker/run.json`), so that training
that goes on, and the audit, belong to the same run. TensorBoard and Weights & Biases write into the run's folder, and nothing
leaves the machine unless WANDB_MODE says so; MLflow writes where its own settings say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import SurefootError, UnknownName
from ..files import inside, read_json, write_json

FOLDER, RUN = "tracker", "run.json"
PROJECT = "surefoot"
TRACKERS = ("tensorboard", "wandb", "mlflow", "aim", "clearml", "comet_ml", "dvclive", "swanlab", "trackio")  # accelerate's
AT_ONCE = 500  # numbers in a request to MLflow
Parameters = Mapping[str, Any]
Numbers = Mapping[str, float]


def flat(sections: Parameters, above: str = "") -> dict[str, Any]:
    """Hyper-parameters by their path, such as `training.epochs`, as every tracker takes them."""
    found: dict[str, Any] = {}
    for name, value in sections.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{above}{name}.")
        elif value is not None:
            found[f"{above}{name}"] = value if isinstance(value, bool | int | float | str) else str(value)
    return found


def remembered(folder: Path, tracker: str, project: str | None) -> tuple[str, str | None]:
    """The project, and what the tracker calls this run, if it knows it there; "" where it has no name for it."""
    path = folder / FOLDER / RUN
    known = read_json("tracked run", path) if path.is_file() else None
    if not isinstance(known, dict) or known.get("tracker") != tracker or project not in (None, known.get("project")):
        return project or PROJECT, None
    return str(known.get("project", PROJECT)), str(known.get("id", ""))


def remember(folder: Path, tracker: str, project: str, called: str) -> None:
    write_json(inside(folder, FOLDER) / RUN, {"tracker": tracker, "project": project, "name": name_of(folder), "id": called})


def name_of(folder: Path) -> str:
    return folder.resolve().name


def begin(accelerator: Any, tracker: str, project: str | None, folder: Path, parameters: Parameters) -> None:
    """Start accelerate's tracker, or go on with its run, and tell it the hyper-parameters once."""
    inside(folder, FOLDER).mkdir(exist_ok=True)
    project, known = remembered(folder, tracker, project)
    options = {
        "mlflow": {"run_name": name_of(folder), "run_id": known or None},
        "wandb": wandb_options(folder, known),
    }
    place = FOLDER if tracker == "tensorboard" else project  # it is a folder there, in that of the run
    accelerator.init_trackers(place, init_kwargs={tracker: options.get(tracker, {})})
    if not accelerator.is_main_process:
        return
    (started,) = accelerator.trackers
    if known is None and tracker == "tensorboard":
        from torch.utils.tensorboard.summary import hparams

        for summary in hparams(flat(parameters), {}):
            started.writer.file_writer.add_summary(summary)
    elif known is None:
        started.store_init_configuration(flat(parameters))
    names: dict[str, Callable[[], str]] = {
        "mlflow": lambda: str(started.tracker.info.run_id),
        "wandb": lambda: str(started.tracker.id),
    }
    remember(folder, tracker, project, names.get(tracker, str)())


def wandb_options(folder: Path, known: str | None) -> dict[str, Any]:
    """Offline unless the environment says otherwise."""
    own = {"name": name_of(folder), "dir": str(folder / FOLDER), "mode": os.environ.get("WANDB_MODE", "offline")}
    return {**own, "settings": {"silent": True}, **({"id": known, "resume": "allow"} if known else {})}


# An audit is told to the run's own tracker, or to a new run where none is remembered. A tracker gives back its name of the run.


def to_tensorboard(folder: Path, project: str, known: str | None, numbers: Numbers, page: Path) -> str:
    """Scalars, and the page as the path to open: TensorBoard shows no HTML."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / FOLDER)) as writer:
        for name, value in numbers.items():
            writer.add_scalar(name, value)
        writer.add_text("audit/page", str(page.resolve()))
    return ""


def to_mlflow(folder: Path, project: str, known: str | None, numbers: Numbers, page: Path) -> str:
    import mlflow

    where = {"run_id": known} if known else {"experiment_id": mlflow.set_experiment(project).experiment_id}
    with mlflow.start_run(run_name=name_of(folder), **where) as run:
        allowed = [(re.sub(r"[^\w\-./ :]", "_", name), value) for name, value in numbers.items()]
        for start in range(0, len(allowed), AT_ONCE):
            mlflow.log_metrics(dict(allowed[start : start + AT_ONCE]))
        mlflow.log_artifact(str(page), "audit")
    return str(run.info.run_id)


def to_wandb(folder: Path, project: str, known: str | None, numbers: Numbers, page: Path) -> str:
    import wandb

    with wandb.init(project=project, **wandb_options(folder, known)) as run:
        run.summary.update(dict(numbers))
        run.log({"audit/page": wandb.Html(str(page))})
        return str(run.id)


AUDITED = {"tensorboard": to_tensorboard, "mlflow": to_mlflow, "wandb": to_wandb}


def check_tracker(tracker: str) -> None:
    """A tracker of training, and installed."""
    if tracker not in TRACKERS:
        raise UnknownName("tracker", tracker, TRACKERS)
    if find_spec(tracker) is None and not (tracker == "tensorboard" and find_spec("tensorboardX")):
        raise SurefootError(f"tracker '{tracker}' is not installed.")


def check_tracker_of_audits(tracker: str) -> None:
    """A tracker that takes audits, and is installed."""
    if tracker not in AUDITED:
        raise UnknownName("tracker of audits", tracker, AUDITED)
    if find_spec(tracker) is None:
        raise SurefootError(f"tracker '{tracker}' is not installed.")


def log_audit(folder: Path, tracker: str, project: str | None, numbers: Numbers, page: Path) -> None:
    """Tell a tracker the numbers of an audit and its page."""
    inside(folder, FOLDER).mkdir(exist_ok=True)
    project, known = remembered(folder, tracker, project)
    called = AUDITED[tracker](folder, project, known, numbers, page)
    remember(folder, tracker, project, called)
