"""Attacks on a classifier: adversarial images, and what they do to it."""

from .evaluation import AttackResult, evaluate
from .fast_gradient import fgsm

__all__ = ["AttackResult", "evaluate", "fgsm"]
