"""Attacks on a classifier: adversarial images, and what they do to it."""

from ._apgd import apgd
from ._fab import fab
from ._fast_strong import fast_strong
from ._patch import put_patch, train_patch
from ._pgd import fgsm, kl_pgd, pgd
from ._rays import rays
from ._square import square
from ._transfer import TransferMatrix, transfer
from .attempts import AttackResult
from .auto_attack import AutoAttack, autoattack
from .evaluation import CurvePoint, evaluate, security_curve
from .gradient_masking import masking_signs, noise
from .gradients import gives_gradients

__all__ = [
    "AttackResult",
    "AutoAttack",
    "CurvePoint",
    "TransferMatrix",
    "apgd",
    "autoattack",
    "evaluate",
    "fab",
    "fast_strong",
    "fgsm",
    "gives_gradients",
    "kl_pgd",
    "masking_signs",
    "noise",
    "pgd",
    "put_patch",
    "rays",
    "security_curve",
    "square",
    "train_patch",
    "transfer",
]
