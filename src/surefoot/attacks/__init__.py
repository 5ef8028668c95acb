"""Attacks on a classifier: adversarial images, and what they do to it.

Names are imported when they are first used.

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

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
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

_HOME = {
    "apgd": "._apgd",
    "fab": "._fab",
    "fast_strong": "._fast_strong",
    "put_patch": "._patch",
    "train_patch": "._patch",
    "fgsm": "._pgd",
    "kl_pgd": "._pgd",
    "pgd": "._pgd",
    "rays": "._rays",
    "square": "._square",
    "TransferMatrix": "._transfer",
    "transfer": "._transfer",
    "AttackResult": ".attempts",
    "AutoAttack": ".auto_attack",
    "autoattack": ".auto_attack",
    "CurvePoint": ".evaluation",
    "evaluate": ".evaluation",
    "security_curve": ".evaluation",
    "masking_signs": ".gradient_masking",
    "noise": ".gradient_masking",
    "gives_gradients": ".gradients",
}

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


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        return getattr(_import_module(_HOME[name], __name__), name)
    raise AttributeError(f"module 'surefoot.attacks' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
