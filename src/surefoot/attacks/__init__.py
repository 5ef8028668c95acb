"""Attacks on a classifier: adversarial images, and what they do to it."""

from .auto_attack import AutoAttack, autoattack
from .curves import CurvePoint, security_curve
from .evaluation import evaluate
from .fast_gradient import fgsm
from .masking import masking_signs
from .projected_gradient import kl_pgd, pgd
from .random_search import noise
from .results import AttackResult
from .transferring import TransferMatrix, transfer

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
