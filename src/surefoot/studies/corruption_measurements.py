"""Measurements under corruption: the benchmarks' sets, levels of noise, and the occlusions of discriminative-noise Table 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

import torch

from ..calibration.scoring import estimates
from ..calibration.temperature import fit_temperature
from ..corruptions.alexnet import ALEXNET, is_fair
from ..corruptions.engine import GENERATOR, corrupt
from ..corruptions.families import CORRUPTIONS, EVERY_FAMILY, FAMILIES
from ..corruptions.families import NAMES as ALL
from ..corruptions.levels import add_gaussian_noise, add_uniform_noise
from ..errors import UnknownName, require
from ..models.prediction import transformed
from ..types import Batch, Images, Predictions
from .answer_measurements import Metrics
from .subjects import Subject

SCORES = ("accuracy", "ece", "rms", "nll")
Change = Callable[[Batch], Images]
DISTRIBUTIONS = {"gaussian": add_gaussian_noise, "uniform": add_uniform_noise}
CHAINS = {
    "occlusion": "occlusion",
    "occlusion+noise": "occlusion",
    "down_up": "down_up_sampling",
    "down_up+occlusion": "down_up_sampling+occlusion",
    "stripes": "stripes",
    "down_up+stripes": "down_up_sampling+stripes",
}


def corruptions(
    subject: Subject,
    names: Sequence[str] = ALL,
    severities: Sequence[float] = (1, 2, 3, 4, 5),
    max_images: int | None = None,
    bins: int = 15,
    each: bool = False,
    generator: int = GENERATOR,
) -> Metrics:
    """Means over (corruption, severity) of accuracy, ECE, RMS calibration error and NLL, and of ECE after temperature.

    Also the mean accuracy of each family and without noise and blur (macs Table 7), the accuracy drop relative to clean
    (representation-space Table 3), the mean error, which is mCE without a baseline, and RMS pooled over all cells; on ImageNet
    also the errors divided by AlexNet's and their mean, mCE. `each` adds the accuracy under every corruption. `generator` is
    the version of the corruptions: results of an earlier one can be shown but not computed again.
    """
    require(generator == GENERATOR, "generator", f"{GENERATOR}, the corruptions of this version", generator)
    require(len(names) > 0 and len(severities) > 0, "names and severities", "at least one", (names, severities))
    for name in names:
        if name not in CORRUPTIONS:
            raise UnknownName("corruption", name, CORRUPTIONS.names)
    fitted = fit_temperature(subject.calibration)
    by_name: dict[str, list[Metrics]] = {}
    pooled = []
    for name in names:
        for severity in severities:
            found = answers(subject, corrupted(name, severity), max_images)
            cell = {key: float(value) for key, value in estimates(found, SCORES, bins, intervals=0).items()}
            scaled = Predictions(fitted.apply(found.logits), found.labels)
            cell["ece_scaled"] = float(estimates(scaled, ("ece",), bins, intervals=0)["ece"])
            by_name.setdefault(name, []).append(cell)
            pooled.append(found)
    cells = [cell for found in by_name.values() for cell in found]
    out = {key: fmean(cell[key] for cell in cells) for key in cells[0]}
    accuracies = {name: fmean(cell["accuracy"] for cell in found) for name, found in by_name.items()}
    for family, members in EVERY_FAMILY.items():
        if present := [accuracies[name] for name in members if name in accuracies]:
            out[f"accuracy.{family}"] = fmean(present)
    easy = [accuracies[name] for family in ("weather", "digital") for name in FAMILIES[family] if name in accuracies]
    if easy:
        out["accuracy.no_overlap"] = fmean(easy)
    clean = float(answers(subject, lambda batch: batch.images, max_images).correct.double().mean())
    out |= {"clean_accuracy": clean, "drop": (clean - out["accuracy"]) / clean if clean else 0.0, "error": 1 - out["accuracy"]}
    if is_fair(subject.data.num_classes, subject.data.image_size, severities) and all(name in accuracies for name in ALEXNET):
        relative = {name: (1 - accuracies[name]) / ALEXNET[name] for name in ALEXNET}
        out |= {"mce": fmean(relative.values()), **{f"ce.{name}": value for name, value in relative.items()}}
    out["rms_pooled"] = float(estimates(Predictions.join(pooled), ("rms",), bins, intervals=0)["rms"])
    return out | ({f"accuracy.{name}": value for name, value in accuracies.items()} if each else {})


def noise_levels(
    subject: Subject,
    levels: Sequence[float] = (2, 4, 8, 16, 20),
    distribution: str = "gaussian",
    draws: int = 10,
    max_images: int | None = None,
) -> Metrics:
    """Accuracy at noise levels in units of 1/255, the mean over draws, and its deviation (discriminative-noise Tables 1-3)."""
    if distribution not in DISTRIBUTIONS:
        raise UnknownName("distribution", distribution, DISTRIBUTIONS)
    require(draws >= 1, "draws", "at least 1", draws)
    out = {"accuracy.0": float(answers(subject, lambda batch: batch.images, max_images).correct.double().mean())}
    for level in levels:
        values = []
        for draw in range(draws):
            found = answers(subject, with_noise(distribution, level, draw), max_images)
            values.append(float(found.correct.double().mean()))
        out[f"accuracy.{level:g}"] = fmean(values)
        out[f"draws.{level:g}"] = float(torch.tensor(values, dtype=torch.float64).std()) if draws > 1 else 0.0
    return out


def occlusions(
    subject: Subject, noise: float = 40, severity: float = 4, draws: int = 10, max_images: int | None = None
) -> Metrics:
    """Accuracy under the perturbations of discriminative-noise Table 4, the mean over draws; noise in units of 1/255."""
    out = {}
    for key, chain in CHAINS.items():
        shares = []
        for draw in range(1 if key == "down_up" else draws):  # nothing is drawn there
            change = corrupted(chain, severity, draw)
            if key.endswith("noise"):
                change = one_after_the_other(change, with_noise("gaussian", noise, draw))
            shares.append(float(answers(subject, change, max_images).correct.double().mean()))
        out[f"accuracy.{key}"] = fmean(shares)
    return out


def corrupted(name: str, severity: float, seed: int = 0) -> Change:
    return lambda batch: corrupt(batch.images, name, severity, seed=seed, indices=batch.indices)


def with_noise(distribution: str, level: float, seed: int) -> Change:
    add = DISTRIBUTIONS[distribution]
    return lambda batch: add(batch.images, level / 255, seed=seed, indices=batch.indices)


def one_after_the_other(first: Change, second: Change) -> Change:
    return lambda batch: second(Batch(first(batch), batch.labels, batch.indices))


def answers(subject: Subject, change: Change, max_images: int | None) -> Predictions:
    """Answers on changed test images."""
    return subject.predict(transformed(subject.batches(max_images), change))
