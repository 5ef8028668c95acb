"""Geometry as figures of a study: each against the function it comes from, or against its definition."""

import math
from dataclasses import replace

import pytest
import torch

from surefoot.geometry._margins import margins
from surefoot.geometry.planes import FAR_BIAS
from surefoot.studies.geometry_measurements import (
    bias,
    centre_searches,
    centres,
    cone,
    cosine_attacks,
    curvature,
    curvature_and_noise,
    features,
    loss_surface,
    seen,
    sensitivities,
)
from surefoot.studies.start_measurements import plane_start
from surefoot.studies.subjects import Subject
from surefoot.training.recipes import Recipe
from surefoot.training.runs import load_run


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


def test_every_search_of_centres(subject):
    """Table 9: each setting by plain gradient descent with autograd, the rate halved along a cosine or not."""
    found = centre_searches(subject, learning_rates=(0.05, 0.2), steps=(7,), max_images=100)
    assert len(found) == 4
    images, _, _ = subject.images(100)
    with torch.no_grad():
        outputs = subject.model.outputs(images)
    confidence, classes = outputs.logits.softmax(1).max(1)
    head = subject.model.head
    for name, value in found.items():
        kind, _, rate, _, count = name.removeprefix("pearson.").split()
        points = torch.zeros(10, head.in_features, requires_grad=True)
        for step in range(int(count)):
            loss = torch.nn.functional.cross_entropy(head(points), torch.arange(10), reduction="sum")
            share = 1 if kind == "constant" else (1 + math.cos(math.pi * step / int(count))) / 2
            slope = torch.autograd.grad(loss, points)[0]
            points = (points - float(rate) * share * slope).detach().requires_grad_()
        cosine = torch.cosine_similarity(outputs.features, points.detach()[classes])
        r = torch.corrcoef(torch.stack([confidence, cosine]))[0, 1]
        assert value == pytest.approx(float(r), abs=1e-3)


@pytest.mark.parametrize(("far", "regions"), [(True, False), (False, True)])
def test_starts_far_from_the_origin(tmp_path, far, regions):
    """Fig. 12 b and c: the start is the one asked for, and the recipe then trains from it; done twice, nothing is trained."""
    given = {
        "data": {"name": "digits", "fraction": 0.3},
        "model": {"name": "small-resnet", "feature_dim": 2},
        "objective": "cross-entropy",
    }
    recipe = Recipe.check({**given, "training": {"epochs": 1, "learning_rate": 0.05}})
    data = recipe.load_data()
    model = recipe.build_model(data)
    subject = Subject(recipe, model, recipe.build_objective(), model, data, torch.device("cpu"), tmp_path, "digits")
    usual = float(seen(subject, 100)[0].features.norm(dim=1).mean())
    found = plane_start(subject, features=far, regions=regions, epochs=3, max_images=100)
    assert found["distance.before"] == pytest.approx(usual, rel=1e-5) or far
    assert (found["distance.before"] > 1.3 * usual) is far
    assert 0 <= found["index"] <= 100
    (folder,) = (tmp_path / "runs").iterdir()
    trained = load_run(folder).model
    answers, labels = seen(replace(subject, model=trained), 100)
    assert found["accuracy"] == float((answers.logits.argmax(1) == labels).double().mean())
    if regions:  # one epoch does not move the bias far from where it was put
        assert (trained.head.bias.detach() - torch.tensor(FAR_BIAS)).abs().max() < 3
        written = (folder / "model.safetensors").stat().st_mtime_ns
        assert plane_start(subject, regions=True, epochs=3, max_images=100) == found
        assert (folder / "model.safetensors").stat().st_mtime_ns == written


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
