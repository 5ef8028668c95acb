"""`fit`: what decides a run, checked and written down, then the loop. Reading its signature needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ..allocator import keep_large_blocks
from ..errors import SurefootError
from ..schemas import any_spelling
from .arguments import check_values, training_option_names
from .trackers import begin, check_tracker

if TYPE_CHECKING:
    from ..data.augmentation import Augmentation
    from ..data.dataset import Dataset
    from ..models.classifier import Classifier
    from ..objectives.base import Objective
    from .runs import Run


@any_spelling
def fit(
    model: Classifier,
    objective: Objective | str,
    data: Dataset,
    *,
    epochs: int = 30,
    batch_size: int = 128,
    optimiser: str = "sgd",
    learning_rate: float = 0.1,
    momentum: float = 0.9,
    nesterov: bool = True,
    weight_decay: float = 5e-4,
    decay_norms_and_biases: bool = True,
    schedule: str = "cosine",
    warmup_epochs: int = 1,
    decay_epochs: int | Sequence[int] = 50,
    decay_rate: float = 0.1,
    clip_norm: float | None = None,
    accumulation: int = 1,
    ema_decay: float | None = None,
    patience: int | None = None,
    keep: str = "last",
    precision: str = "auto",
    channels_last: bool = False,
    compile: bool = False,
    augmentation: Augmentation | None = None,
    seed: int = 0,
    device: str = "auto",
    tracker: str | None = None,
    project: str | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Run:
    """Train `model` in place, validating after each epoch if there are images for it, and leave it in evaluation mode.

    `objective` may be the name of a method, with its own defaults.
    The same seed gives the same weights. With an `output`, the run can be stopped at any moment and the same call goes on from
    the last finished epoch, to the same weights; without one, nothing is written. `augmentation` is the data's if not given.

    `batch_size` is that of one update, over all processes; `accumulation` computes it in so many parts. `decay_epochs` and
    `decay_rate` are for the "step" schedule. `ema_decay` keeps a moving average of the weights, which is validated and kept.
    `patience` stops after so many epochs without a better validation accuracy. `keep` says which weights the run ends with:
    those of the "last" or of the "best" epoch by validation accuracy. `tracker` is one of accelerate's, such
    as "tensorboard", "mlflow" or "wandb", and `project` what the run belongs to there, "surefoot" if not given.

    >>> import surefoot as sf
    >>> data = sf.load_data("digits", fraction=0.2)
    >>> model = sf.load_model("tiny-resnet", data=data, seed=0)
    >>> run = sf.fit(model, "label-smoothing", data, epochs=2, output="runs/smooth", progress=False)
    >>> len(run.history)
    2
    """
    given = dict(locals())
    from ..data.timm_sets import IterableSplit
    from ..models.classifier import pick_device
    from ..objectives.methods import build_objective
    from ..seeds import global_seed
    from .engine import build_engine
    from .loop import train
    from .precision import choose_precision
    from .processes import accelerated
    from .recipes import Recipe
    from .runs import Run, finish_run, finished_run, key_of, writing_run
    from .validation import check_fitting

    objective = build_objective(objective, {}) if isinstance(objective, str) else objective
    if project is not None and tracker is None:
        raise SurefootError("project is for a tracker.")
    if tracker is not None:
        check_tracker(tracker)
    names = training_option_names()
    check_values({name: given[name] for name in names})
    check_fitting(model, data, patience, keep)
    objective.prepare(model.num_classes, model.feature_dim)
    given["augmentation"] = data.augmentation if augmentation is None else augmentation
    torch_device = pick_device(device)
    given["precision"] = choose_precision(precision, torch_device)[0]  # as the recipe will say
    options = {name: given[name] for name in names}
    recipe = Recipe.of(model, objective, data, given["augmentation"], options, seed)
    folder = None if output is None else Path(output)
    keep_large_blocks()
    with (
        accelerated(torch_device, given["precision"], tracker, folder) as accelerator,
        global_seed(seed, "training"),
    ):
        if accelerator.num_processes > 1 and isinstance(data.train, IterableSplit):
            raise SurefootError("A stream (wds/, tfds/, hfids/) is read by one process: its reader would divide it again.")
        engine = build_engine(accelerator, model, objective, len(data.train), given)
        engine.recipe_key = key_of(recipe)
        with writing_run(recipe, folder, overwrite) if folder and accelerator.is_main_process else nullcontext():
            accelerator.wait_for_everyone()
            finished = finished_run(folder, model, objective)
            if finished:
                return finished
            if tracker is not None and folder is not None:
                begin(accelerator, tracker, project, folder, recipe.sections())
            state = train(engine, data, epochs, patience, folder, progress, keep)
            model.load_state_dict(engine.best if keep == "best" else engine.judged.state_dict())
            run = Run(recipe, model.eval(), objective, state.history, folder, class_names=data.class_names)
            accelerator.wait_for_everyone()
            if folder and accelerator.is_main_process:
                finish_run(run)
            accelerator.wait_for_everyone()
    return run
