"""Measurements under attack: on the model itself, and with images made on another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..attacks._transfer import transfer
from ..attacks.attempts import GENERATOR
from ..attacks.evaluation import evaluate
from ..errors import SurefootError, require
from ..training.recipes import Recipe
from .answer_measurements import Metrics
from .subjects import Subject


def attacks(
    subject: Subject,
    names: Sequence[str] = ("fgsm", "pgd-weak"),
    max_images: int | None = 1000,
    generator: int = GENERATOR,
) -> Metrics:
    """Success among images that were right, and robust accuracy, of attacks by name (representation-space Table 2).

    `generator` is the version of the attacks' draws: results of an earlier one can be shown but not computed again.
    """
    check_generator(generator)
    images, labels, indices = subject.images(max_images)
    model = subject.predictor.to(subject.device)
    out: Metrics = {}
    for name in names:
        found = evaluate(model, images, labels, name, batch_size=subject.batch_size, indices=indices)
        out |= {f"success.{name}": found.success_rate, f"robust.{name}": found.robust_accuracy}
    return out


def check_generator(generator: int) -> None:
    require(generator == GENERATOR, "generator", f"{GENERATOR}, the attacks' draws of this version", generator)


def transfers(
    subject: Subject,
    surrogates: Mapping[str, Mapping[str, Any]],
    names: Sequence[str] = ("fgsm", "pgd-strong"),
    max_images: int | None = 1000,
    generator: int = GENERATOR,
) -> Metrics:
    """Success of attacks made on surrogates, each the same recipe with other sections (representation-space Table 4).

    A surrogate that is not trained yet is trained here, in its own folder, where its own cell finds it. `generator` is the
    version of the attacks' draws.
    """
    check_generator(generator)
    if subject.work is None:
        raise SurefootError("transfer needs the folder of the study's runs.")
    from .cell_runs import train

    images, labels, indices = subject.images(max_images)
    models = {}
    for label, sections in surrogates.items():
        own = {"data": subject.recipe.data, "model": subject.recipe.model, "objective": subject.recipe.objective}
        rest = {"training": subject.recipe.training, "augmentation": subject.recipe.augmentation, "seed": subject.recipe.seed}
        recipe = Recipe.check({**own, **rest, **sections})
        recipe = replace(recipe, data={**(recipe.data or {}), "download": (subject.recipe.data or {}).get("download", True)})
        models[label] = train(recipe, subject.data_label, subject.work, str(subject.device)).predictor.to(subject.device)
    target = {"target": subject.predictor.to(subject.device)}
    matrix = transfer(models, target, images, labels, list(names), batch_size=subject.batch_size, indices=indices)
    return {f"success.{label}.{name}": matrix[label, "target", name].success_rate for label in models for name in names}
