"""Attacks by name, with the papers' budgets."""

from __future__ import annotations

from ..registry import Registry

ATTACKS = Registry("attack", [("fgsm", "surefoot.attacks.fast_gradient:fgsm", "One signed gradient step, L-inf 8/255")])
