"""The table of attacks, and what their names say of them; importing it imports none of them."""

from __future__ import annotations

from ..registry import Own, Registry, takes

HERE = "surefoot.attacks.presets:"
ATTACKS = Registry(
    "attack",
    [
        ("fgsm", "surefoot.attacks._pgd:fgsm", "One signed gradient step, L-inf 8/255"),
        ("pgd", "surefoot.attacks._pgd:pgd", "Projected gradient descent, 7 steps of 2.5 eps / 7, L-inf 8/255"),
        ("pgd-weak", HERE + "pgd_weak", "7 steps of 0.2/255 in L-inf 0.4/255"),
        ("pgd-strong", HERE + "pgd_strong", "7 steps of 2/255 in L-inf 8/255"),
        ("autoattack", HERE + "autoattack_strong", "APGD, targeted APGD, FAB and Square, L-inf 8/255"),
        ("autoattack-weak", HERE + "autoattack_weak", "The same in L-inf 1/255"),
        ("autoattack-strong", HERE + "autoattack_strong", "The same in L-inf 8/255"),
        ("apgd", "surefoot.attacks._apgd:apgd", "Ascent with steps that adapt, 100 iterations, L-inf 8/255"),
        ("fab", "surefoot.attacks._fab:fab", "Towards the nearest boundary of each target class, L-inf 8/255"),
        (
            "square",
            "surefoot.attacks._square:square",
            "Random squares, from scores alone: no gradient; 1,000 queries, L-inf 8/255",
        ),
        ("rays", "surefoot.attacks._rays:rays", "RayS, from labels alone; 1,000 queries, L-inf 8/255"),
        (
            "fast-strong",
            "surefoot.attacks._fast_strong:fast_strong",
            "APGD on the margin and at three targets, L-inf 8/255",
        ),
        ("sparse-weak", HERE + "sparse_weak", "The same in L1 3: few pixels, each by much"),
        ("sparse-strong", HERE + "sparse_strong", "The same in L1 12, the budget of Croce and Hein 2021"),
        ("noise", "surefoot.attacks.gradient_masking:noise", "The worst of 20 random points, L-inf 8/255"),
    ],
    Own("a function of (model, images, labels)", takes(3)),
    "surefoot.attacks",
)
WITHOUT_GRADIENT = ("square", "rays", "noise")  # attacks that a model without gradients can be put under
FIXED = (
    "pgd-weak",
    "pgd-strong",
    "autoattack-weak",
    "autoattack-strong",
    "sparse-weak",
    "sparse-strong",
)  # budgets that belong to the name
NOT_OPTIONS = ("model", "images", "labels", "generator", "seed", "indices")
