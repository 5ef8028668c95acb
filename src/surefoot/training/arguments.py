"""What may be asked of training: names and ranges of the options of `fit`; checked before anything is read, without torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import UnknownName, require
from ..schemas import check_options, schema_of

MOST_EPOCHS = 1_000_000
NOT_MODEL_OPTIONS = ("name", "data", "returns", "timeout", "retries", "sends")  # the last of models that are not trained
NOT_DATA_OPTIONS = ("name", "model", "normalised", "channel_order")  # those of objects, which no file can hold
ENVIRONMENT = ("device", "tracker", "project", "output", "overwrite", "progress")  # where and how a run is made, not what it is
NOT_TRAINING_OPTIONS = ("model", "objective", "data", "augmentation", "seed", *ENVIRONMENT)
NAMES = {
    "optimiser": ("sgd", "adam", "adamw"),
    "schedule": ("cosine", "step", "constant"),
    "keep": ("last", "best"),
    "precision": ("auto", "float32", "bf16", "fp16"),
}
RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {  # of what is given
    "epochs": (lambda value: 1 <= value <= MOST_EPOCHS, f"1 to {MOST_EPOCHS:,}"),
    "batch_size": (lambda value: value >= 2, "at least 2"),
    "accumulation": (lambda value: value >= 1, "at least 1"),
    "ema_decay": (lambda value: 0 < value < 1, "above 0 and below 1"),
    "patience": (lambda value: value >= 1, "at least 1"),
    "clip_norm": (lambda value: value > 0, "positive"),
    "learning_rate": (lambda value: 0 < value < math.inf, "positive and finite"),
    "momentum": (lambda value: 0 <= value < 1, "at least 0 and below 1"),
    "weight_decay": (lambda value: 0 <= value < math.inf, "at least 0"),
    "decay_rate": (lambda value: 0 < value <= 1, "above 0 and at most 1"),
}


def check_values(options: Mapping[str, Any]) -> None:
    """Refuse a name that is none, and a number that cannot be meant; None is what was not given."""
    for name, value in options.items():
        if name in NAMES and value not in NAMES[name]:
            raise UnknownName(name, value, NAMES[name])
        if name in RANGES and value is not None:
            holds, rule = RANGES[name]
            require(holds(value), name, rule, value)


def training_option_names() -> list[str]:
    from ._fit import fit

    return list(schema_of(fit, NOT_TRAINING_OPTIONS).model_fields)


def training_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Training options with the defaults of `fit`."""
    from ._fit import fit

    return check_options("training", fit, given, NOT_TRAINING_OPTIONS)
