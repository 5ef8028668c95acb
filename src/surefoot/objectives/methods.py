"""The table of training methods, and how one is built for a model."""

from __future__ import annotations

from typing import Any

from ..registry import Registry
from .base import Objective

OBJECTIVES = Registry(
    "objective",
    [
        ("cross-entropy", "surefoot.objectives.cross_entropy:CrossEntropy", "The baseline"),
        (
            "label-smoothing",
            "surefoot.objectives.label_smoothing:LabelSmoothing",
            "Labels keep a share for every class",
        ),
        ("focal", "surefoot.objectives.focal:Focal", "Less weight on images that are already right"),
    ],
)


def build_objective(name: str, options: dict[str, Any]) -> Objective:
    """The training method called `name`, or the user's own `package.module:Class`."""
    objective: Objective = OBJECTIVES.load(name)(**options)
    return objective
