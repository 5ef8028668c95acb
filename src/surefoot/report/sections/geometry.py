"""Why it is robust or not: one number for each measurement, and the figures of the papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..words import short, spoken
from .base import Model, Section
from .complexity import complexity_drawings
from .curvature import curvature_drawings
from .features import feature_drawings
from .layers import layer_drawings
from .shapes import shape_drawings
from .slopes import slope_drawings

MEANINGS = {
    "mean margin": "the right logit minus the best of the others; larger is safer for logits of the same size (macs Eq. 3)",
    "logit norm": "how large the logits are; confidence grows with it (macs Tab. 6)",
    "largest logit": "mean of the winning logit (macs Tab. 6)",
    "images": "that the rest of this table was measured on",
    "sensitivity": "how far noise moves the logits, for each unit of noise; smaller is steadier (macs Tab. 10)",
    "prediction sensitivity": "how far noise moves the probabilities (macs Def. 4.3)",
    "margin to sensitivity": "margin for each unit of movement: the larger, the more noise an answer bears (macs Tab. 10)",
    "median margin to sensitivity": "the same of the middle image",
    "radius": "estimated distance to the nearest other answer; an estimate, no certificate (macs Thm 4.5)",
    "curvature": "how sharply the loss bends around an image; flat is robust (discriminative-noise Eq. 21)",
    "hessian curvature": "the same from the Hessian itself; nets with kinks (ReLU) differ",
    "largest eigenvalue": "of the Hessian of the loss in the image",
    "fisher trace": "how much the answer depends on small changes of the image (magnma Eq. 7)",
    "local lipschitz": "how steeply the lead over another class falls; smaller is steadier (macs Thm 4.5, small r)",
    "first order radius": "distance to another answer if the slope stayed as it is; no certificate (macs Thm 4.5, small r)",
    "loss change": "how much the loss can grow within a distance of 0.1, to second order (magnma Thm 1, Eq. 11)",
    "two sided loss change": "the same for a loss that may also bend downwards (magnma Thm 1)",
    "largest rise of the loss": "within a distance of 1 along the gradient and across it (discriminative-noise Fig. 11)",
    "feature rms": "size of the features; confidence grows with it (representation-space Tab. 2)",
    "feature rms deviation": "its spread over images",
    "feature cosine": "how well features point at their class centre; 1 is exactly (representation-space Tab. 2)",
    "feature cosine deviation": "its spread over images",
    "centre correlations": "how well the cosine to each kind of centre tells the confidence (representation-space Tab. 1)",
    "cone index": "of 100 steps to the origin, how many keep the class; 100 is a cone (representation-space Tab. 5)",
    "full cones": "share of images whose class never changes on the way to the origin",
    "bias dependence": "share of right answers that change without the bias of the head (representation-space Tab. 6)",
    "mean absolute bias": "size of the head's bias (representation-space Tab. 6)",
    "neural collapse": "distance from classes that are single points, equally far apart; 0 is complete collapse",
    "perturbation rms": "how far FGSM at 8/255 moves the features (representation-space Fig. 7)",
    "perturbation correlation": "whether large features are moved further",
    "class dispersion": "largest distance within a class, mean of the classes (discriminative-noise Def. 3.1)",
    "class margin": "least distance of a class to a boundary, mean of the classes (discriminative-noise Def. 5.1)",
    "signed class margin": "the same, below 0 where an image is on the wrong side (discriminative-noise Def. 5.1)",
    "hyperplane distance": "of an image's features to the nearest boundary, below 0 where wrong (discriminative-noise Eq. 10)",
    "centre stability": "class centres over 18 optimiser settings; cosines near 1 are stable (representation-space Tab. 9)",
    "class separation": "of pairs of classes at a layer, 0 to 0.693: apart entirely (discriminative-noise Thm 6.3)",
    "class separation bound": "what the last layer forces on those before it; 0 says nothing (discriminative-noise Thm 6.3)",
    "log spectral complexity": "logarithm of R_f, how much the layers can stretch; without shortcuts (macs Def. 4.1)",
    "log margin term": "logarithm of R_f B / (margin sqrt n): a term to compare by, not a bound (macs Thm 4.2)",
    "share below margin": "of training images with a margin below 1, the other part of the theorem (macs Thm 4.2)",
    "mapping bound": "on the share outside a class's ball, best class; vacuous from 1 on (discriminative-noise Thm 6.2)",
    "vacuous mapping bounds": "share of the classes for which that bound says nothing (discriminative-noise Thm 6.2)",
    "feature distance under noise": "how far noise moves the features (discriminative-noise Def. 6.1)",
    "loss outside": "loss where features have left their neighbourhood (discriminative-noise Def. 6.1)",
    "eigenvalue upper bound": "discriminative-noise Thm 6.1; it assumes a quadratic loss",
    "eigenvalue lower bound": "discriminative-noise Thm 6.1; it assumes a quadratic loss",
    "certified accuracy": "right for certain within the radius, by randomised smoothing",
    "certified noise": "deviation of the smoothing noise",
    "certified images": "that were certified",
}


def geometry_section(models: Sequence[Model]) -> Section:
    """A row for each number that any model has, and the figures."""
    numbers = [dict(flat(measured(model))) for model in models]
    names = list(dict.fromkeys(name for row in numbers for name in row))
    rows = [{"name": name, "meaning": meaning(name), "cells": [row.get(name) for row in numbers]} for name in names]
    notes = [(model.name, note) for model in models for note in model.audit["geometry"].get("notes", ())]
    inside = (*feature_drawings(models), *shape_drawings(models), *layer_drawings(models))
    drawings = (*inside, *curvature_drawings(models), *slope_drawings(models), *complexity_drawings(models))
    return Section("geometry", "Why: the geometry behind it", {"rows": rows, "notes": notes, "models": models}, drawings)


def measured(model: Model) -> dict[str, Any]:
    """All numbers of an audit's geometry by name."""
    found = model.audit["geometry"]
    own = {key: value for key, value in found.items() if key not in ("measured", "notes") and value is not None}
    return {**own, **(found.get("measured") or {})}


def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Nested names as "outer: inner", and every number as text with its interval."""
    for key, value in values.items():
        name = f"{before}: {spoken(key)}" if before else spoken(key)
        if isinstance(value, dict) and "value" in value:
            interval = "" if value.get("low") is None else f"{short(value['low'])} to {short(value['high'])}"
            yield name, {"value": short(value["value"]), "interval": interval}
        elif isinstance(value, dict):
            yield from flat(value, name)
        elif isinstance(value, (int, float)) or value is None:
            yield name, {"value": short(value), "interval": ""}


def meaning(name: str) -> str:
    """One line on a number, by its own name or by that of what it is part of."""
    return MEANINGS.get(name) or MEANINGS.get(name.split(":")[0], "")
