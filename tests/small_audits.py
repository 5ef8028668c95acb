"""A small audit made up by hand, as plain values and as a folder."""

import copy
import json

import torch

import surefoot as sf
from surefoot.files import write_tensors


def number(value, half=0.01):
    return {"value": value, "low": value - half, "high": value + half}


def audit(name="a", accuracy=0.9, ece=0.02, depth="quick", **corrupted):
    """Two corruptions at two severities, one attack."""
    means = {"gaussian_noise": 0.6, "fog": 0.8, **corrupted}
    cells = [
        {"name": kind, "severity": severity, "accuracy": number(mean + shift), "ece": number(0.1), "nll": number(1.0)}
        for kind, mean in means.items()
        for severity, shift in ((1, 0.1), (3, -0.1))
    ]
    mean = sum(cell["accuracy"]["value"] for cell in cells) / len(cells)
    return copy.deepcopy(
        {
            "schema": 2,
            "subject": {
                "name": name, "data": {"name": "digits"}, "split": "test", "images": 200, "depth": depth, "seed": 0,
                "classes": ["0", "1", "2"],
            },
            "calibration": {
                "accuracy": number(accuracy), "ece": number(ece), "nll": number(0.4), "brier": number(0.2),
                "signed_error": number(0.01), "ece_if_calibrated": [0.0, 0.03],
                "top5": {"value": None, "low": None, "high": None},
            },
            "temperature": {"temperatures": [1.5], "calibration": {"ece": number(0.015)}, "corrupted_ece": number(0.1)},
            "corruptions": {
                "images": 100, "mean_accuracy": number(mean), "mean_ece": number(0.1), "mean_nll": number(1.0),
                "alexnet_mce": None, "cells": cells,
            },
            "attacks": {
                "pgd-weak": {
                    "images": 100, "eps": 0.4 / 255, "success_rate": number(0.4), "robust_accuracy": number(0.5)
                }
            },
        }
    )  # fmt: skip


def predictions(seed, scale=1.0, count=200):
    """Answers of which some are right, the same labels for every seed."""
    draws = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (count,), generator=torch.Generator().manual_seed(99))
    logits = torch.randn(count, 3, generator=draws) + 2 * torch.nn.functional.one_hot(labels, 3)
    return sf.Predictions.from_logits(scale * logits, labels, indices=torch.arange(count) + 7)


def write(folder, plain, answers=None, draws=None):
    """The folder of an audit."""
    folder.mkdir(parents=True, exist_ok=True)
    if answers is not None:
        answers.save(folder / "audit-data" / "predictions.safetensors")
    if draws is not None:
        write_tensors(folder / "audit-data" / "draws.safetensors", draws)
    (folder / "audit.json").write_text(json.dumps(plain))
    return folder
