"""The arithmetic behind docs/errata.md, from the papers' figures in the shipped studies."""

from statistics import fmean

import pytest
import torch

from surefoot.calibration.bins import reliability
from surefoot.studies.layout import as_pair
from surefoot.studies.study_files import read_study
from surefoot.types import Predictions


def figures(name, column, **labels):
    """The paper's means for a column, by method."""
    rows = [row for row in read_study(name, "full").published if labels.items() <= row.items() and column in row]
    return {row.get("method"): as_pair(row[column])[0] for row in rows}


def test_macs_tables_disagree_on_one_net():
    corrupted = "corruptions.accuracy"
    first, fifth = (
        figures("macs-table1", corrupted, data="cifar10"),
        figures("macs-table5", corrupted, data="cifar10", model="resnet50"),
    )
    seventh = figures("macs-table7", corrupted)
    assert [each["cross-entropy"] for each in (first, fifth, seventh)] == [39.92, 42.4, 42.4]
    assert [each["macs"] for each in (first, fifth, seventh)] == [43.48, 46.1, 43.1]
    assert figures("macs-table5", corrupted, data="cifar100", model="convnext-tiny")["macs"] == 33.3
    margins = [
        figures(name, column) for name, column in (("macs-table6", "logits.margin"), ("macs-table10", "sensitivity.margin"))
    ]
    assert [(each["cross-entropy"], each["macs"]) for each in margins] == [(2.31, 3.64)] * 2


def test_macs_averages():
    families = {
        name: figures("macs-table7", f"corruptions.accuracy.{name}") for name in ("noise", "blur", "weather", "digital")
    }
    means = {method: fmean(each[method] for each in families.values()) for method in families["noise"]}
    assert means == pytest.approx({"cross-entropy": 42.4, "augmix": 45.125, "macs": 44.175, "macs-augmix": 46.675})
    kept = {method: fmean(families[name][method] for name in ("weather", "digital")) for method in ("cross-entropy", "macs")}
    assert kept == pytest.approx({"cross-entropy": 49.95, "macs": 51.0})
    accuracy = figures("macs-table11", "clean.accuracy")
    assert max(accuracy, key=accuracy.get) == "macs"
    rows = read_study("macs-table9", "full").published
    costs = [row["cost.relative"] for row in rows if row["method"] == "macs" and row["model"] != "average"]
    assert (min(costs), max(costs), round(fmean(costs), 2)) == (1.74, 2.11, 1.96)


def test_representation_tables():
    blurs = [f"corruptions.ce.{name}" for name in ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")]
    swin = [figures("representation-table3", blur, model="swin-tiny")["cutmix"] for blur in blurs]
    convnext = [figures("representation-table3", blur, model="convnext-tiny")["cross-entropy"] for blur in blurs]
    assert swin == convnext == [85.0, 93.0, 85.6, 91.2]
    (row,) = read_study("representation-table9", "full").published
    values = [as_pair(value)[0] for column, value in row.items() if column.startswith("stability.pearson")]
    assert (len(values), min(values), max(values)) == (18, 0.5349, 0.5452)


def test_the_loss_of_the_proof_is_bounded_and_cross_entropy_is_not():
    """Along a ray to the right class with smoothed labels: L rises to 0, cross-entropy without bound."""
    cosines = torch.tensor([0.9, 0.1, -0.2], dtype=torch.float64)
    targets = torch.tensor([0.9, 0.05, 0.05], dtype=torch.float64)
    norms = torch.tensor([1.0, 10.0, 100.0, 1000.0], dtype=torch.float64)
    log_p = (norms[:, None] * cosines).log_softmax(1)
    cross_entropy = -(targets * log_p).sum(1)
    bounded = -(-cross_entropy).exp()
    assert bool(((bounded >= -1) & (bounded <= 0)).all())
    assert cross_entropy[-1] / cross_entropy[-2] == pytest.approx(10, rel=1e-6)


def test_a_mean_over_cells_cannot_be_as_low_as_the_papers():
    """Perfectly calibrated predictions of 10,000 images: E[error^2] is the sum of p (1 - p) over occupied bins / 10,000."""
    draws = torch.Generator().manual_seed(0)
    centres = (torch.arange(3, 15, dtype=torch.float64) + 0.5) / 15  # bins above 0.2
    floor = float((centres * (1 - centres)).sum() / 10_000) ** 0.5
    for shape in (lambda u: 0.2 + 0.8 * u, lambda u: 1 - 0.8 * u**3):  # as many everywhere; most of them sure
        errors = []
        for _ in range(20):
            confidence = shape(torch.rand(10_000, generator=draws, dtype=torch.float64))
            labels = (torch.rand(10_000, generator=draws, dtype=torch.float64) >= confidence).long()  # 0 is predicted
            others = ((1 - confidence) / 9)[:, None].expand(-1, 9)
            predictions = Predictions.from_probabilities(torch.cat([confidence[:, None], others], 1), labels)
            errors.append(reliability(predictions, bins=15).rms)
        assert fmean(errors) == pytest.approx(floor, rel=0.1)
        assert fmean(errors) > 0.0133
