"""Attacks on a classifier: adversarial images, and what they do to it.

>>> import torch
>>> import surefoot as sf
>>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 2)).eval()
>>> images, labels = torch.full((2, 3, 8, 8), 0.5), torch.tensor([0, 1])
>>> moved = sf.attacks.fgsm(model, images, labels, 8 / 255)
>>> round(float((moved - images).abs().max()) * 255)
8
>>> sf.attacks.evaluate(model, images, labels, "pgd-strong").robust_accuracy <= 1
True
"""

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
