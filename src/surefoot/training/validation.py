"""What is checked before training, and what is judged after each epoch."""

from __future__ import annotations

import torch
from torch import nn

from ..calibration.bins import reliability
from ..data.dataset import Dataset
from ..errors import NotFiniteScores, SurefootError
from ..models.classifier import Classifier, predict
from .checkpoints import Epoch, Progress


def check_fitting(model: Classifier, data: Dataset, patience: int | None, keep: str) -> None:
    """Refuse a model and data that do not go together so, before anything is written."""
    if model.num_classes != data.num_classes:
        raise SurefootError(f"The model has {model.num_classes} classes and the data {data.num_classes}.")
    if len(data.train) < 2:
        raise SurefootError(f"Training needs at least 2 images to train on, got {data.train}.")
    if len(data.validation) == 0:
        for argument, asked in (("patience", patience is not None), ("keep='best'", keep == "best")):
            if asked:
                raise SurefootError(f"{argument} needs validation images, and the data have none (data.validation).")


def validate(predictor: nn.Module, data: Dataset, batch_size: int, device: torch.device) -> Epoch:
    """Accuracy and calibration on the validation split; nothing where it is empty."""
    if len(data.validation) == 0:
        return {}
    try:
        predictions = predict(predictor, data.validation.batches(batch_size), device)
    except NotFiniteScores as error:  # the last update of the epoch broke the weights, where no loss is left to tell
        raise SurefootError(
            f"On the validation images {error} Lower learning_rate or set clip_norm; the last finished epoch is kept."
        ) from error
    accuracy = float(predictions.correct.double().mean())
    return {"validation_accuracy": accuracy, "validation_ece": reliability(predictions).ece}


def is_better(history: list[Epoch]) -> bool:
    """Whether the last epoch has a higher validation accuracy than all before it; without validation the last is the best."""
    if "validation_accuracy" not in history[-1]:
        return True
    return all(history[-1]["validation_accuracy"] > epoch["validation_accuracy"] for epoch in history[:-1])


def should_stop(state: Progress, patience: int | None) -> bool:
    """Whether so many epochs have brought nothing better."""
    return patience is not None and state.epoch - state.best_epoch >= patience
