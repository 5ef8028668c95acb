"""A small audit made up by hand, as plain values and as a folder with a table."""

import copy
import json

import numpy as np
import torch

import surefoot as sf
from surefoot.auditing.table import part_path, schema_of, write_part
from surefoot.auditing.table_files import FOLDER
from surefoot.measurements.base import CLEAN
from surefoot.measurements.summaries import columns_of

CELLS = tuple(f"{name}/{severity}" for name in ("gaussian_noise", "fog") for severity in (1, 3))


def number(value, half=0.01):
    return {"value": value, "low": value - half, "high": min(value + half, max(value, 1.0))}


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
            "schema": 3,
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


def predictions(seed, scale=1.0, count=200, sure=2.0):
    """Predictions of which some are right, the same labels for every seed; `sure` is how far the label stands out."""
    draws = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (count,), generator=torch.Generator().manual_seed(99))
    logits = torch.randn(count, 3, generator=draws) + sure * torch.nn.functional.one_hot(labels, 3)
    return sf.Predictions.from_logits(scale * logits, labels, indices=torch.arange(count) + 7)


def rows_of(given, temperature=None):
    """The rows of a table."""
    temperatures = None if temperature is None else torch.full((len(given),), temperature)
    return {"index": given.indices.numpy(), **columns_of(given.logits, given.labels, temperatures)}


def write(folder, plain, given=None, names=None, key=None, temperature=None):
    """The folder of an audit; `given` are its predictions, of clean images or by condition, and `names` the ids by index."""
    folder.mkdir(parents=True, exist_ok=True)
    if given is not None:
        by_condition = given if isinstance(given, dict) else {CLEAN: given}
        names = names or {index: f"test/{index}.png" for index in by_condition[CLEAN].indices.tolist()}
        plain["subject"]["table"] = key or f"key-of-{plain['subject']['name']}"
        part = {name: rows_of(each, temperature) for name, each in by_condition.items()}
        part[CLEAN]["logits"] = by_condition[CLEAN].logits.numpy().astype(np.float32)
        place = part_path(folder / "audit-data" / FOLDER, 0)
        write_part(place, part, names, schema_of([], 3), plain["subject"]["table"])
    (folder / "audit.json").write_text(json.dumps(plain))
    return folder
