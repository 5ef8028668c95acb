"""The training loop, on one screen."""

from __future__ import annotations

import time
from pathlib import Path

import torch
from torch import nn

from ..allocator import keep_large_blocks
from ..calibration.bins import reliability
from ..data.augmentation import Augmentation
from ..data.dataset import Dataset
from ..errors import SurefootError, require
from ..models.classifier import Classifier
from ..models.prediction import pick_device, predict
from ..objectives.base import Objective
from ..seeds import derive, generator, global_seed
from .history import Epoch, History
from .optimisation import build_sgd, warmup_cosine
from .recipes import Recipe, training_option_names
from .runs import Run, prepare_folder, save_run
from .step import Step


def fit(
    model: Classifier,
    objective: Objective,
    data: Dataset,
    *,
    epochs: int = 30,
    batch_size: int = 128,
    learning_rate: float = 0.1,
    momentum: float = 0.9,
    nesterov: bool = True,
    weight_decay: float = 5e-4,
    warmup_epochs: int = 1,
    augmentation: Augmentation | None = None,
    seed: int = 0,
    device: str = "auto",
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Run:
    """Train `model` in place with SGD and a cosine schedule; validate after each epoch; write `output` at the end.

    The same seed gives the same weights. The model is left in evaluation mode. Nothing is written when `output` is None.
    Without an augmentation, the one that suits the data is used (`data.augmentation`).
    """
    given = dict(locals())
    require(epochs >= 1, "epochs", "at least 1", epochs)
    require(batch_size >= 2, "batch_size", "at least 2", batch_size)
    require(0 <= warmup_epochs <= epochs, "warmup_epochs", f"from 0 to epochs = {epochs}", warmup_epochs)
    if model.num_classes != data.num_classes:
        raise SurefootError(f"The model has {model.num_classes} classes and the data {data.num_classes}.")
    if len(data.train) < 2 or len(data.validation) == 0:
        raise SurefootError(f"Training needs images to train and to validate on, got {data.train} and {data.validation}.")
    augment = data.augmentation if augmentation is None else augmentation
    options = {name: given[name] for name in training_option_names()}
    recipe = Recipe.of(model, objective, data, augment, options, seed)
    folder = prepare_folder(output, overwrite)
    keep_large_blocks()

    place = pick_device(device)
    step = Step(model, objective).to(place)
    batch_size = min(batch_size, len(data.train))
    steps = len(data.train) // batch_size
    optimiser = build_sgd(step, learning_rate, momentum, nesterov, weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, warmup_cosine(epochs * steps, warmup_epochs * steps))
    history = History(epochs, steps, progress)
    with history, global_seed(seed, "training"):
        for epoch in range(epochs):
            began = time.perf_counter()
            step.train()
            order = generator(seed, epoch, "order")
            for number, batch in enumerate(data.train.batches(batch_size, shuffle=order, drop_last=True, device=place)):
                torch.manual_seed(derive(seed, epoch, number, "model"))  # dropout and the like
                images = augment(batch.images, generator(seed, epoch, number, "augmentation"))
                terms = step(images, batch.labels, generator(seed, epoch, number, "objective"))
                optimiser.zero_grad()
                terms.total.backward()
                optimiser.step()
                schedule.step()
                history.add(terms, len(batch))
            rate = steps * batch_size / (time.perf_counter() - began)
            history.end_epoch(validate(objective.predictor(model), data, batch_size, place), rate)
    run = Run(recipe, model.eval(), objective, history.epochs, folder)
    if folder is not None:
        save_run(run)
    return run


def validate(predictor: nn.Module, data: Dataset, batch_size: int, device: torch.device) -> Epoch:
    """Accuracy and calibration on the validation split."""
    answers = predict(predictor, data.validation.batches(batch_size), device)
    accuracy = float(answers.correct.double().mean())
    return {"validation_accuracy": accuracy, "validation_ece": reliability(answers).ece}
