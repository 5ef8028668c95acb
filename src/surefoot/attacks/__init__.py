"""Attacks on a classifier: adversarial images, and what they do to it."""

from ._pgd import fgsm, kl_pgd, pgd
from ._transfer import TransferMatrix, transfer
from .attempts import AttackResult
from .auto_attack import AutoAttack, autoattack
from .evaluation import CurvePoint, evaluate, security_curve
from .gradient_masking import masking_signs, noise

__all__ = [
    "AttackResult",
    "AutoAttack",
    "CurvePoint",
    "TransferMatrix",
    "autoattack",
    "evaluate",
    "fgsm",
    "kl_pgd",
    "masking_signs",
    "noise",
    "pgd",
    "security_curve",
    "transfer",
]
