"""Geometry, probe, start and cost as rows of a study: each against the function it comes from, or against its definition."""

import math
from dataclasses import replace
from statistics import fmean

import pytest
import torch
from one_pass import context_of, numbers_of

from surefoot.data.dataset import whole
from surefoot.errors import SurefootError
from surefoot.geometry._margins import margins
from surefoot.geometry.features import observed_features
from surefoot.geometry.planes import FAR_BIAS
from surefoot.geometry.probes import fit_probe
from surefoot.measurements.classes import Centres, CentreSearches
from surefoot.measurements.cost import StepCost
from surefoot.measurements.curvature import Curvature, CurvatureNoise, LossSurface
from surefoot.measurements.features import Bias, Cone, Features, LinearProbe
from surefoot.measurements.plane import PlaneStart
from surefoot.measurements.predictions import LogitStatistics
from surefoot.measurements.sensitivity import Sensitivity
from surefoot.objectives import AugMix
from surefoot.training.recipes import Recipe
from surefoot.training.runs import load_run


@pytest.fixture
def context(run, digits):
    run.model.eval()
    own = {"space": run.model, "recipe": run.recipe, "objective": run.objective}
    return context_of(run.predictor, digits, intervals=0, **own)


def outputs_of(context, count):
    """Logits and features of so many images by the model's own methods."""
    with torch.no_grad():
        return context.linear.outputs(context.some(count).images)


def test_logits(context, digits):
    batch = whole(digits.test, 256)
    with torch.no_grad():
        logits = context.model(batch.images)
    leads = [
        float(row[y] - max(v for k, v in enumerate(row.tolist()) if k != y))
        for row, y in zip(logits, batch.labels, strict=True)
    ]
    found = numbers_of(LogitStatistics(), context)
    assert found["margin"] == pytest.approx(fmean(leads), rel=1e-4)
    assert found["norm"] == pytest.approx(fmean(float(row.norm()) for row in logits), rel=1e-4)
    assert found["largest"] == pytest.approx(fmean(float(row.max()) for row in logits), rel=1e-4)


def test_sensitivity(context):
    found = numbers_of(Sensitivity(draws=2, max_images=40), context)
    batch = context.some(40)
    assert found["margin"] == pytest.approx(float(margins(context.linear, batch.images, batch.labels).mean()), rel=1e-4)
    assert found["ratio"] == pytest.approx(found["margin"] / found["sensitivity"], rel=1e-5)
    assert found == numbers_of(Sensitivity(draws=2, max_images=40), context)  # the same draws for every model


def test_curvature(context):
    found = numbers_of(Curvature(draws=2, max_images=20), context)
    assert 0 <= found["lowest90.25"] <= found["lowest90.50"] <= found["lowest90.75"]
    assert found["curvature"] > 0
    assert found == numbers_of(Curvature(draws=2, max_images=20), context)


def test_curvature_and_noise(context):
    found = numbers_of(CurvatureNoise(level=0.3, draws=4, curvature_draws=2, max_images=40), context)
    assert len([name for name in found if name.startswith("curvature.")]) == 5
    assert all(0 <= found[f"accuracy.{share}"] <= 1 for share in (10, 50, 100))
    assert math.isnan(found["pearson"]) or -1 <= found["pearson"] <= 1


def test_loss_surface(context):
    found = numbers_of(LossSurface(points=5, max_images=5), context)
    assert found["rise"] >= 0
    small = numbers_of(LossSurface(reach=1e-3, points=5, max_images=5), context)
    assert small["rise"] == pytest.approx(small["slope"] * 1e-3, rel=0.2)  # a plane, close by


def test_features_by_definition(context):
    found = numbers_of(Features(max_images=50, attacked=10), context)
    seen = outputs_of(context, 50).features
    assert found["feature_rms"] == pytest.approx(float(seen.square().mean(1).sqrt().mean()), rel=1e-4)
    assert -1 <= found["cosine"] <= 1
    assert found["perturbation_rms"] > 0


def test_centres(context):
    found = numbers_of(Centres(max_images=100), context)
    assert set(found) == {"pearson.means", "pearson.weights", "pearson.minimum_loss"}
    assert all(-1 <= value <= 1 for value in found.values())
    outputs = outputs_of(context, 100)
    confidence, classes = outputs.logits.softmax(1).max(1)
    cosine = torch.cosine_similarity(outputs.features, context.linear.head.weight.detach()[classes])
    r = torch.corrcoef(torch.stack([confidence, cosine]))[0, 1]
    assert found["pearson.weights"] == pytest.approx(float(r), abs=1e-4)


def test_every_search_of_centres(context):
    """Table 9: each setting by plain gradient descent with autograd, the rate halved along a cosine or not."""
    found = numbers_of(CentreSearches(learning_rates=(0.05, 0.2), steps=(7,), max_images=100), context)
    assert len(found) == 4
    outputs = outputs_of(context, 100)
    confidence, classes = outputs.logits.softmax(1).max(1)
    head = context.linear.head
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


class OneFolder:
    """Trains in a folder for each recipe and suffix, once."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, recipe, model=None, suffix=""):
        output = self.folder / f"recipe{suffix}"
        return recipe.run(model=model, output=output, device="cpu", progress=False)


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
    context = context_of(model, data, space=model, recipe=recipe, trainer=OneFolder(tmp_path), intervals=0)
    usual = float(context.outputs(100)[0].features.norm(dim=1).mean())
    start = PlaneStart(features=far, regions=regions, epochs=3, max_images=100)
    found = numbers_of(start, context)
    assert found["distance.before"] == pytest.approx(usual, rel=1e-5) or far
    assert (found["distance.before"] > 1.3 * usual) is far
    assert 0 <= found["index"] - found["exact_index"] <= 1
    (folder,) = tmp_path.iterdir()
    assert folder.name == ("recipe-start-features-3" if far else "recipe-start-regions-3")
    trained = load_run(folder).model
    outputs, labels = replace(context, space=trained, kept={}).outputs(100)
    assert found["accuracy"] == float((outputs.logits.argmax(1) == labels).double().mean())
    if regions:  # one epoch does not move the bias far from where it was put
        assert (trained.head.bias.detach() - torch.tensor(FAR_BIAS)).abs().max() < 3
        written = (folder / "model.safetensors").stat().st_mtime_ns
        assert numbers_of(start, context) == found
        assert (folder / "model.safetensors").stat().st_mtime_ns == written


def test_a_start_needs_somewhere_to_train(context):
    with pytest.raises(SurefootError, match="needs a folder to train in"):
        PlaneStart().run(context)


def test_cone_and_bias(context):
    found = numbers_of(Cone(max_images=100), context)
    assert 0 < found["index"] <= 100
    assert 0 <= found["index"] - found["exact_index"] <= 1
    head = context.linear.head
    answers = numbers_of(Bias(max_images=100), context)
    assert answers["size"] == pytest.approx(float(head.bias.detach().abs().mean()), rel=1e-5)
    assert 0 <= answers["changed"] <= 1


def test_cost_of_cross_entropy_is_one(context):
    """Medians of pairs; generous, since other processes share the machine."""
    assert 0.5 < numbers_of(StepCost(steps=5, batch_size=32), context)["relative"] < 2
    dearer = replace(context, objective=AugMix(), kept={})
    assert numbers_of(StepCost(steps=5, batch_size=32), dearer)["relative"] > 1
    with pytest.raises(SurefootError, match="steps must be at least 1"):
        StepCost(steps=0)
    with pytest.raises(SurefootError, match="needs the recipe and the objective"):
        StepCost().run(replace(context, objective=None, kept={}))


def test_the_strength_of_the_probe_is_chosen_on_validation_images(context, digits):
    """Each strength fitted by hand: the best on validation, the larger of equals, and its accuracy on test."""
    strengths = (1e-4, 1e-1, 10.0)
    found = numbers_of(LinearProbe("digits", strengths), context)
    splits = {}
    for name in ("train", "validation", "test"):
        split = getattr(digits, name)
        outputs = [observed_features(context.linear, batch.images, 256).features for batch in split.batches(256)]
        splits[name] = torch.cat(outputs).double(), split.labels
    mean, std = splits["train"][0].mean(0), splits["train"][0].std(0, correction=0)
    standard = {name: ((features - mean) / std.clamp_min(1e-12), labels) for name, (features, labels) in splits.items()}
    accuracies = {}
    for strength in strengths:
        weight, bias = fit_probe(*standard["train"], 10, strength)
        for name in ("validation", "test"):
            features, labels = standard[name]
            accuracies[name, strength] = float(((features @ weight.T + bias).argmax(1) == labels).double().mean())
    best = max(strengths, key=lambda strength: (accuracies["validation", strength], strength))
    assert len({accuracies["validation", strength] for strength in strengths}) > 1
    assert found["strength"] == best
    assert found["accuracy"] == pytest.approx(accuracies["test", best], abs=0.006)  # single precision there


def test_probe_of_the_same_data(context):
    """Features that were trained on digits separate digits, far above chance."""
    assert numbers_of(LinearProbe("digits"), context)["accuracy"] > 0.5
