"""Geometry as figures of a study: each against the function it comes from, or against its definition."""

import math

import pytest
import torch

from surefoot.geometry.logit_margins import margins
from surefoot.studies.geometry_measurements import (
    bias,
    centres,
    cone,
    cosine_attacks,
    curvature,
    curvature_and_noise,
    features,
    loss_surface,
    sensitivities,
)
from surefoot.studies.subjects import Subject


@pytest.fixture
def subject(run, digits):
    run.model.eval()
    return Subject(run.recipe, run.model, run.objective, run.predictor, digits, torch.device("cpu"))


def test_sensitivity(subject):
    found = sensitivities(subject, draws=2, max_images=40)
    images, labels, _ = subject.images(40)
    assert found["margin"] == pytest.approx(float(margins(subject.model, images, labels).mean()), rel=1e-4)
    assert found["ratio"] == pytest.approx(found["margin"] / found["sensitivity"], rel=1e-5)
    assert found == sensitivities(subject, draws=2, max_images=40)  # the same draws for every model


def test_curvature(subject):
    found = curvature(subject, draws=2, max_images=20)
    assert 0 <= found["lowest90.25"] <= found["lowest90.50"] <= found["lowest90.75"]
    assert found["curvature"] > 0
    assert found == curvature(subject, draws=2, max_images=20)


def test_curvature_and_noise(subject):
    found = curvature_and_noise(subject, level=0.3, draws=4, curvature_draws=2, max_images=40)
    assert len([name for name in found if name.startswith("curvature.")]) == 5
    assert all(0 <= found[f"accuracy.{share}"] <= 1 for share in (10, 50, 100))
    assert math.isnan(found["pearson"]) or -1 <= found["pearson"] <= 1


def test_loss_surface(subject):
    found = loss_surface(subject, points=5, max_images=5)
    assert found["rise"] >= 0
    small = loss_surface(subject, reach=1e-3, points=5, max_images=5)
    assert small["rise"] == pytest.approx(small["slope"] * 1e-3, rel=0.2)  # a plane, close by


def test_features_by_definition(subject):
    found = features(subject, max_images=50, attacked=10)
    images, _, _ = subject.images(50)
    with torch.no_grad():
        seen = subject.model.features(images)
    assert found["feature_rms"] == pytest.approx(float(seen.square().mean(1).sqrt().mean()), rel=1e-4)
    assert -1 <= found["cosine"] <= 1
    assert found["perturbation_rms"] > 0


def test_centres(subject):
    found = centres(subject, max_images=100)
    assert set(found) == {"pearson.means", "pearson.weights", "pearson.minimum_loss"}
    assert all(-1 <= value <= 1 for value in found.values())
    images, _, _ = subject.images(100)
    with torch.no_grad():
        outputs = subject.model.outputs(images)
    confidence, classes = outputs.logits.softmax(1).max(1)
    cosine = torch.cosine_similarity(outputs.features, subject.model.head.weight.detach()[classes])
    r = torch.corrcoef(torch.stack([confidence, cosine]))[0, 1]
    assert found["pearson.weights"] == pytest.approx(float(r), abs=1e-4)


def test_cone_and_bias(subject):
    found = cone(subject, max_images=100)
    assert 0 < found["index"] <= 100
    head = subject.model.head
    answers = bias(subject, max_images=100)
    assert answers["size"] == pytest.approx(float(head.bias.detach().abs().mean()), rel=1e-5)
    assert 0 <= answers["changed"] <= 1


def test_success_by_cosine(subject):
    found = cosine_attacks(subject, ["fgsm"], max_images=60)
    assert {"success.fgsm.low", "success.fgsm.high", "pearson.fgsm"} == set(found)
    assert 0 <= found["success.fgsm.high"] <= 1
