"""The table of training methods, and how one is built for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..registry import Own, Registry

if TYPE_CHECKING:
    from .base import Objective


def is_objective(target: Any) -> bool:
    from .base import Objective

    return isinstance(target, type) and issubclass(target, Objective)


OBJECTIVES = Registry(
    "objective",
    [
        ("cross-entropy", "surefoot.objectives.cross_entropy:CrossEntropy", "The baseline"),
        (
            "label-smoothing",
            "surefoot.objectives.cross_entropy:LabelSmoothing",
            "Labels keep a share for every class",
        ),
        ("focal", "surefoot.objectives.cross_entropy:Focal", "Less weight on images that are already right"),
        ("mixup", "surefoot.objectives.mixup:Mixup", "Pairs of images and labels mixed"),
        ("cutmix", "surefoot.objectives.mixup:CutMix", "A rectangle of another image pasted"),
        ("augmix", "surefoot.objectives.augmix:AugMix", "Agreement on an image and two mixed chains of augmentations"),
        (
            "surefoot",
            "surefoot.objectives.surefoot:Surefoot",
            "Experimental, our own: MaCS whose other view is mixed and made worse",
        ),
        ("macs", "surefoot.objectives.macs:MaCS", "Margin and consistency supervision"),
        ("macs-augmix", "surefoot.objectives.macs:MaCSAugMix", "The sum of MaCS and AugMix"),
        ("magnma", "surefoot.objectives.magnma:MAGNMA", "Misclassification-aware noise smoothing and mixed augmentations"),
        ("dign", "surefoot.objectives.magnma:DiGN", "MAGNMA's noise term without its weight p_y"),
        (
            "discriminative",
            "surefoot.objectives.discriminative:Discriminative",
            "Compact classes, far from boundaries",
        ),
        ("stability", "surefoot.objectives.noisy:Stability", "Features of clean and noisy images close"),
        ("noisy", "surefoot.objectives.noisy:NoisyOnly", "Noisy images only"),
        ("clean-and-noisy", "surefoot.objectives.noisy:CleanAndNoisy", "Every image as it is and with noise"),
        ("diverse-noise", "surefoot.objectives.magnma:DiverseNoise", "Noise of many levels"),
        (
            "rse",
            "surefoot.objectives.noisy:RandomSelfEnsemble",
            "Noise in training and at test time",
        ),
        ("adversarial", "surefoot.objectives.adversarial:AdversarialTraining", "The worst image near each, by PGD"),
        ("trades", "surefoot.objectives.adversarial:TRADES", "Agreement with the worst image near each"),
    ],
    Own("a subclass of surefoot.objectives.Objective", is_objective),
    "surefoot.objectives",
)


def build_objective(name: str, options: dict[str, Any]) -> Objective:
    """The training method called `name`, or the user's own `package.module:Class`."""
    objective: Objective = load_method(name)(**options)
    return objective


def load_method(name: str) -> type[Objective]:
    """The class called `name`."""
    method: type[Objective] = OBJECTIVES.load(name)
    return method
