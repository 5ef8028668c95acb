"""What an audit leaves out: by the user's choice (`skip`, `only`), or because the model cannot give what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ..calibration.calibrators import Calibrated
from ..measurements.registry import MEASUREMENTS
from ..models.last_layer import NoHead, evaluating, head_of
from ..types import Batch
from .arguments import PICTURES, check_parts

Measured = dict[str, tuple[str, dict[str, Any]]]  # label to the measurement and its options
GRADIENT = (  # measurements that need one; attacks are exchanged for some that need none (measurements/attacks.py)
    *("security-curve", "patch", "masking", "transfer", "cosine-attacks", "displacement", "curvature", "curvature-noise"),
    *("hessian", "fisher", "slopes", "landscape", "loss-surface", "plane", "plane-start", "complexity", "mapping"),
)
FEATURES = (
    *("features", "displacement", "cone", "bias", "centres", "centre-stability", "classes", "collapse", "plane", "plane-start"),
    *("probe", "feature-scaling", "complexity", "mapping", "layers", "stability"),
)


def chosen_ones(measured: Measured, skip: Sequence[str], only: Sequence[str]) -> Measured:
    """The measurements that the user wants: parts of the page (attacks, geometry, ...) or single labels."""
    check_parts(measured, skip, only)
    parts = {label: part_of(name) for label, (name, _) in measured.items()}
    if not skip and not only:
        return measured
    named = {label for label in measured if {label, parts[label]} & {*skip, *only}}
    kept = {label: each for label, each in measured.items() if (label in named) == bool(only)}
    pictured = "corruptions" in kept and PICTURES in measured
    return {label: each for label, each in kept.items() if label != PICTURES} | (
        {PICTURES: measured[PICTURES]} if pictured else {}
    )


def part_of(name: str) -> str:
    """The part of the page that a measurement belongs to; attacks are one part with their curve and their signs."""
    part = str(getattr(MEASUREMENTS.load(name), "part", "measurements"))
    return "attacks" if part in ("security_curve", "masking") else part


def find_lacks(model: nn.Module, sample: Batch) -> dict[str, str]:
    """What the model cannot give, and why: a gradient at the pixels, features before a last linear layer."""
    lacks: dict[str, str] = {}
    images = sample.images[:2].clone().requires_grad_()
    with evaluating(model), torch.enable_grad():
        try:
            (slope,) = torch.autograd.grad(model(images).sum(), images)
            if not bool(slope.isfinite().all()):
                lacks["gradient"] = "its gradient at the pixels is not finite"
        except (RuntimeError, NotImplementedError):
            lacks["gradient"] = "no gradient reaches the pixels"
    try:
        head_of(model.model if isinstance(model, Calibrated) else model, sample.images[:2])
    except NoHead:
        lacks["features"] = "it does not end in one linear layer"
    return lacks


def possible_ones(measured: Measured, lacks: Mapping[str, str]) -> tuple[Measured, list[str]]:
    """The measurements that such a model allows, and a line for each thing that it lacks on what is left out."""
    kept: Measured = {}
    missing: dict[str, list[str]] = {what: [] for what in lacks}
    for label, (name, options) in measured.items():
        needs = [what for what, names in (("gradient", GRADIENT), ("features", FEATURES)) if name in names and what in lacks]
        for what in needs[:1]:
            missing[what].append(label)
        if not needs:
            kept[label] = (name, options)
    lines = [f"Left out, since {lacks[what]}: {', '.join(labels)}." for what, labels in missing.items() if labels]
    return kept, lines
