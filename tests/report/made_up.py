"""A made-up audit with every part that a page can show, whose numbers are known."""

from __future__ import annotations

import math
import random
from typing import Any

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DAMAGES = {"gaussian_noise": 0.1, "contrast": 0.02, "fog": 0.05}
SEVERITIES = (1, 2, 3, 4, 5)
BINS = 15
LOGIT_MEANS = ("mean_margin", "mean_norm", "mean_largest")


def number(value: float, spread: float = 0.01) -> dict[str, float]:
    return {"value": value, "low": value - spread, "high": value + spread}


def grid(images: int = 1000, steps: int = 10, extra: tuple[float, ...] = (), seed: int = 0) -> dict[str, Any]:
    """Bins at every temperature, counted one image at a time from drawn logits of two classes."""
    draw = random.Random(seed)
    drawn = [abs(draw.gauss(2, 2)) for _ in range(images)]
    right = [draw.random() < 0.6 + 0.05 * min(gap, 6) for gap in drawn]
    found: dict[str, Any] = {"values": [], "counts": [], "confidences": [], "correct": [], "ece": [], "nll": []}
    for value in sorted({*(8 ** (k / steps) for k in range(-steps, steps + 1)), *extra}):
        counts, sums, hits, loss = [0] * BINS, [0.0] * BINS, [0] * BINS, 0.0
        for gap, correct in zip(drawn, right, strict=True):
            confidence = 1 / (1 + math.exp(-gap / value))
            place = min(BINS - 1, math.ceil(confidence * BINS) - 1)
            counts[place] += 1
            sums[place] += confidence
            hits[place] += correct
            loss -= math.log(confidence if correct else max(1 - confidence, 1e-300))
        ece = sum(abs(total - hit) for total, hit in zip(sums, hits, strict=True)) / images
        row = (round(value, 6), counts, sums, hits, ece, loss / images)
        for key, item in zip(found, row, strict=True):
            found[key].append(item)
    return found


def geometry_points(images: int = 60, seed: int = 0) -> dict[str, Any]:
    """What the figures of geometry draw."""
    draw = random.Random(seed)
    cosine = [draw.uniform(-0.2, 1) for _ in range(images)]
    plane = {"axis": [-2.0, -1.0, 0.0, 1.0, 2.0], "classes": [[int(y > 2) for y in range(5)] for _ in range(5)]}
    plane |= {"confidence": [[0.5 + 0.1 * abs(y - 2) for y in range(5)] for _ in range(5)], "features": [[1, 1], [-1, -1]]}
    plane |= {"labels": [0, 1], "weights": [[1, 0], [0, 1]], "centres": [[1, 0], [0, 1]], "means": [[1, 1], [None, None]]}
    path = {"features": [[[1, 1]], [[0, -1]]], "labels": [0]}
    heights = [[float(x + y) for y in range(5)] for x in range(5)]
    field = {"axis": plane["axis"], "loss": heights, "classes": plane["classes"], "label": 0, "class": "cat"}
    field |= {"places": [[-1.0, 0.0], [1.0, 0.0]], "gradients": [[1.0, 1.0], [0.0, 0.0]], "centre": [1.0, 0.5]}
    return {
        "features": {
            "rms": [draw.uniform(0.5, 2) for _ in range(images)],
            "cosine": cosine,
            "confidence": [0.5 + abs(each) / 2 for each in cosine],
            "success": {"edges": [-0.2, 0.4, 1.0], "counts": [30, 30], "values": [0.75, None]},
            "broken_by": "pgd-weak",
        },
        "curvature": {
            "step": 0.01,
            "values": [draw.uniform(0, 5) for _ in range(images)],
            "accuracy": {"shares": [0.5, 1.0], "counts": [30, 60], "values": [0.9, 0.8]},
            "by_count": {"draws": 2, "values": [3.0, 1.0, 2.0], "counts": [20, 20, 20], "correlation": -0.5},
            "spread": {"names": [""], "share": 0.9, "values": [[0.1, 0.5, 1.0, 2.0, 4.0]]},
        },
        "perturbation": {"feature_rms": [1.0, 2.0, 3.0], "values": [0.5, 0.25, 0.75], "feature_rms_mean": 2.0, "mean": 0.5},
        "plane": {"plane": plane, "path": path, "angles": {"places": [[0, 1]]}, "field": field, "field_path": path},
        "logits": {"values": [1.0, -1.0], "norms": [2.0, 3.0], "largest": [2.0, 2.5], **dict.fromkeys(LOGIT_MEANS, 2.0)},
        "cones": {"values": [100, 50, 100], "steps": 100},
        "bias": {"names": ["cat", "<b>dog</b>"], "bias": [0.5, -0.5], "values": [0.25, None]},
        "centre_correlations": {"kinds": ["means", "weights", "minimum loss"], "values": [0.7, 0.8, 0.9]},
        "neural_collapse": {"within_class": 0.5, "equinorm": 0.1, "classes": 2},
        "sensitivity": {
            "values": [1.0, 2.0],
            "probability_change": [0.1, None],
            "std": 0.1,
            "margins": [3.0, -1.0],
            "ratio_of_means": 0.6,
            "median": 0.5,
        },
        "radii": {"values": [0.5, None], "logit_radii": [0.25, 0.5], "note": "An estimate."},
        **deeper_points(draw, images),
    }


def deeper_points(draw: random.Random, images: int) -> dict[str, Any]:
    """What only audits of more depth draw."""
    many = [draw.uniform(0.1, 2) for _ in range(images)]
    shapes = {"dispersions": [4.0, 5.0], "margins": [0.5, 0.25], "signed_margins": [0.5, -0.25], "counts": [30, 30]}
    heights = [[[float(a + b) for b in range(3)] for a in range(3)] for _ in range(2)]
    landscape = {"offsets": [-1.0, 0.0, 1.0], "loss": heights, "names": ["image 3", "image 8"], "right": [True, False]}
    norms = {"names": ["module.conv", "module.fc"], "spectral": [1.5, 2.0], "frobenius": [3.0, 4.0]}
    mapping = {"bound": 14.5, "empirical": 0.0, "capacity": 14.0, "confidence": 0.5, "verdict": "vacuous", "class": "cat"}
    settings = {"schedules": ["constant", "cosine"], "learning_rates": [0.01, 0.01], "steps": [50, 50]}
    places = [[[draw.gauss(0, 1), draw.gauss(0, 1)] for _ in range(images)] for _ in range(2)]
    layers = {"blocks": ["module.blocks.0", "module.blocks.1"], "clean": places, "noisy": places, "level": 0.06}
    separation = {"blocks": layers["blocks"], "pairs": [["cat", "dog"]], "values": [[0.4], [0.6]], "bound": 0.0, "tau": 0.5}
    return {
        "class_shapes": {**shapes, "names": ["cat", "dog"]},
        "hyperplanes": [value - 0.5 for value in many],
        "stability": {"values": [0.5, 1.0], "outside_losses": [2.0, None], "clean_losses": [1.0, 0.5], "distance": 1.0},
        "eigenvalue_bounds": {"values": many, "lower": many, "note": "They exclude each other."},
        "certificates": {"values": [0.3, 0.1], "predictions": [1, 0], "labels": [1, 1], "std": 0.25},
        "fisher": {"values": many, "method": "exact"},
        "hessian": {"values": many, "step": 0.0},
        "slopes": {"values": many, "radii": many, "note": "An estimate."},
        "loss_change": {"values": [1.2 * value for value in many], "gradient_norms": many, "distance": 0.1},
        "landscape": landscape,
        "complexity": {**norms, "log_complexity": 3.5, "log_term": 4.5},
        "mapping": mapping,
        "centre_stability": {**settings, "values": [0.7, 0.8], "mean_cosine": [1.0, 0.9], "least_cosine": [0.9, 0.8]},
        "layers": {**layers, "labels": [place % 2 for place in range(images)], "names": ["cat", "dog"]},
        "separation": separation,
    }


def scores() -> dict[str, Any]:
    values = {"accuracy": 0.9, "top5": 0.99, "nll": 0.4, "brier": 0.2, "ece": 0.07, "rms": 0.09, "signed_error": 0.07}
    values |= {"auroc": 0.85, "aurc": 0.03, "max_error": 0.3}
    return {**{name: number(value) for name, value in values.items()}, "ece_if_calibrated": [0.01, 0.03]}


def cells() -> list[dict[str, Any]]:
    measures = {"ece": 0.02, "nll": 0.5, "rms": 0.03}
    return [
        {
            "name": name,
            "severity": severity,
            "accuracy": number(0.9 - drop * severity),
            **{key: number(base + drop * severity) for key, base in measures.items()},
            "scaled_ece": number(0.05),
            "origin": "generated with seed 0",
        }
        for name, drop in DAMAGES.items()
        for severity in SEVERITIES
    ]


def family(accuracy: float) -> dict[str, Any]:
    return {"accuracy": number(accuracy), "ece": number(0.1), "nll": number(0.6)}


def class_row(name: str, accuracy: float, images: int = 100, taken_for: str | None = None) -> dict[str, Any]:
    row = {"name": name, "images": images, "accuracy": number(accuracy), "precision": number(0.9), "confidence": 0.8}
    return {**row, "taken_for": taken_for, "taken_for_images": 7 if taken_for else 0}


def attack(success: float) -> dict[str, Any]:
    values = {"success_rate": success, "robust_accuracy": 0.9 * (1 - success), "confidence": 0.7, "ece": 0.2, "nll": 1.5}
    return {
        "eps": 8 / 255,
        "images": 250,
        **{name: number(value) for name, value in values.items()},
        "signed_error": number(0.1),
    }


def curve_point(eps: float, accuracy: float) -> dict[str, Any]:
    point = {"attack": "pgd", "eps": eps, "images": 250, "accuracy": number(accuracy), "success_rate": 1 - accuracy}
    return {**point, "confidence": 0.8, "ece": number(0.15), "signed_error": number(0.1), "unfinished": 0}


def examples() -> dict[str, Any]:
    answers = [[0, 0.9], [0, 0.6]]
    shown = {
        f"{name}/{severity}": {"pictures": [PIXEL, PIXEL], "answers": answers} for name in DAMAGES for severity in SEVERITIES
    }
    return {"labels": [0, 1], "clean": [PIXEL, PIXEL], "cells": shown}


def made_up(name: str = "mine", classes: tuple[str, ...] = ("cat", "dog"), **more: Any) -> dict[str, Any]:
    """An audit with its points, as `read_audit` gives it; `more` replaces parts."""
    condition = {"accuracy": number(0.7), "ece": number(0.1), "nll": number(0.9), "rms": number(0.1)}
    after = {**scores(), "ece": number(0.007), "nll": number(0.3)}
    return {
        "schema": 3,
        "subject": {
            "name": name,
            "data": {"name": "digits", "root": None, "seed": 0},
            "split": "test",
            "images": 1000,
            "depth": "standard",
            "classes": list(classes),
            "notes": ["A note on the data."],
            "seed": 0,
            "created": "2026-01-01T00:00:00+00:00",
            "versions": {"surefoot": "0.1.0"},
        },
        "preflight": [],
        "calibration": scores(),
        "recognition": {
            "balanced_accuracy": number(0.84),
            "macro_f1": number(0.83),
            "matthews": number(0.8),
            "chance": 0.5,
            "majority": classes[0],
            "commonest_answer": classes[0],
            "commonest_share": 0.55,
        },
        "temperature": {
            "fitted_on": "the calibration split",
            "images": 100,
            "temperatures": [1.9],
            "notes": [],
            "calibration": after,
            "corrupted_ece": number(0.2),
            "corrupted_scaled_ece": number(0.15),
        },
        "thresholds": [{"wanted_risk": 0.01, "thresholds": [0.86], "coverage": number(0.62), "risk": number(0.003, 0.001)}],
        "corruptions": {
            "images": 500,
            "mean_accuracy": number(0.72),
            "mean_ece": number(0.15),
            "mean_nll": number(0.7),
            "mean_rms": number(0.16),
            "pooled_rms": 0.1,
            "mean_scaled_ece": number(0.1),
            "clean_accuracy": 0.9,
            "relative_drop": number(0.2),
            "mean_error": number(0.28),
            "alexnet_mce": None,
            "families": {"noise": family(0.59), "weather": family(0.75), "digital": family(0.84)},
            "cells": cells(),
        },
        "noise": [
            {
                "kind": "gaussian",
                "level": level / 255,
                "draws": 1,
                "deviation": None,
                **condition,
                "accuracy": number(0.9 - level / 100),
            }
            for level in (2, 8, 20)
        ],
        "occlusions": [{"name": "down_up_sampling+stripes", "severity": 3, **condition}],
        "attacks": {"fgsm": attack(0.6), "pgd-weak": attack(0.2)},
        "security_curve": [curve_point(0.0, 0.9), curve_point(2 / 255, 0.5), curve_point(8 / 255, 0.1)],
        "masking": [],
        "geometry": {
            "mean_margin": number(2.0),
            "logit_norm": number(8.0),
            "largest_logit": None,
            "measured": {"sensitivity": number(1.5), "cone_index": {"mean": 7.25, "share_of_full_cones": 0.5}},
            "notes": ["Radii are estimates."],
        },
        "classes": [class_row(each, 0.95 - 0.2 * place, taken_for=classes[0]) for place, each in enumerate(classes)],
        "groups": [],
        "points": {
            "reliability": {"counts": [0, 200, 800], "confidences": [0.0, 120.0, 760.0], "correct": [0, 100, 710]},
            "temperatures": grid(extra=(1.9,)),
            "feature_scales": grid(seed=1),
            "mistakes": [{"label": 0, "answer": 1, "index": 17, "confidence": 0.97, "picture": PIXEL}],
            "examples": examples(),
            "geometry": geometry_points(),
        },
        **more,
    }
