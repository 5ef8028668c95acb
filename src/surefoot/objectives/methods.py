"""The table of training methods, and how one is built for a model."""

from __future__ import annotations

from typing import Any

from ..errors import SurefootError
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
    objective: Objective = load_method(name)(**options)
    return objective


def load_method(name: str) -> type[Objective]:
    """The class called `name`."""
    method = OBJECTIVES.load(name)
    if not (isinstance(method, type) and issubclass(method, Objective)):
        raise SurefootError(f"objective '{name}' must be a subclass of surefoot.objectives.Objective.")
    return method
