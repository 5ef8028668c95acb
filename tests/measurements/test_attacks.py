"""Rows of a study under attack, each by a second implementation, on one small trained model."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from by_hand import CLOSE, COUNT, logits_of, row
from torch.nn import functional as F

from surefoot.attacks import evaluate, put_patch, train_patch
from surefoot.attacks.presets import budget_of, find_attack
from surefoot.auditing import passes
from surefoot.auditing.passes import measure
from surefoot.data.dataset import whole
from surefoot.data.subsets import choose, taken
from surefoot.errors import SurefootError
from surefoot.geometry.centres import class_centres
from surefoot.measurements import attacks
from surefoot.measurements.context import Context
from surefoot.measurements.patch import ALONE, training_pictures
from surefoot.measurements.registry import build
from surefoot.studies.cell_runs import Beside, train
from surefoot.studies.cells import digest, identity
from surefoot.training.recipes import Recipe


def one_step(model, images, labels, eps):
    """FGSM (Goodfellow et al. 2015)."""
    images = images.clone().requires_grad_()
    (slope,) = torch.autograd.grad(F.cross_entropy(model(images), labels, reduction="sum"), images)
    return (images + eps * slope.sign()).clamp(0, 1).detach()


def right(model, images, labels):
    return logits_of(model, images).argmax(1) == labels


def measured_rows(context, measurement):
    """The columns that a measurement adds, of its images in the order of their index."""
    batch = context.some(measurement.max_images)
    return {name: values.tolist() for name, values in measurement.columns(context, batch).items()}


def test_attacks(context, sample):
    images, labels = sample.images, sample.labels
    found = row(context, "attacks", names=["fgsm", "pgd-weak", "fgsm"], max_images=COUNT)
    before = right(context.model, images, labels)
    after = right(context.model, one_step(context.model, images, labels, budget_of("fgsm")), labels)
    assert found["success.fgsm"] == pytest.approx(float((before & ~after).sum() / before.sum()), **CLOSE)
    assert found["robust.fgsm"] == pytest.approx(float((before & after).double().mean()), **CLOSE)
    pgd = evaluate(context.model, images, labels, "pgd-weak", indices=sample.indices)
    assert found["success.pgd-weak"] == pytest.approx(pgd.success_rate, **CLOSE)
    assert found["robust.pgd-weak"] == pytest.approx(pgd.robust_accuracy, **CLOSE)
    assert len(found) == 4


def test_attacks_by_the_cosine_to_the_centre(context, sample, run):
    images, labels = sample.images, sample.labels
    found = row(context, "cosine-attacks", names=["fgsm"], max_images=COUNT)
    centres = class_centres(run.model.head)
    with torch.no_grad():
        cosine = F.cosine_similarity(run.model.features(images), centres[labels])
    before = right(context.model, images, labels)
    lost = ~right(context.model, one_step(context.model, images, labels, budget_of("fgsm")), labels)
    angles, lost = cosine[before].double().numpy(), lost[before].double().numpy()
    order = angles.argsort(kind="stable")
    half = (len(order) + 1) // 2
    assert found == pytest.approx(
        {
            "success.fgsm.low": lost[order[:half]].mean(),
            "success.fgsm.high": lost[order[half:]].mean(),
            "pearson.fgsm": np.corrcoef(angles, lost)[0, 1],
        },
        **CLOSE,
    )


def test_the_histogram_has_every_attack(context, sample):
    """Success in each bin of the cosine, by a loop over images."""
    names = ["fgsm", "pgd-weak"]
    measurement = build("cosine-attacks", {"names": names, "max_images": COUNT})
    shown = measure(context, measurement, "cosine-attacks").figures["cosine_attacks"]
    cosine = measured_rows(context, measurement)["label_cosine"]
    assert list(shown["attacks"]) == names
    for name in names:
        result = evaluate(context.model, sample.images, sample.labels, name, indices=sample.indices)
        tried, lost = [0] * 20, [0] * 20
        for angle, was_right, gone in zip(cosine, result.clean.correct, result.broken, strict=True):
            number = min(sum(angle >= edge for edge in shown["edges"][1:-1]), 19)
            tried[number] += int(was_right)
            lost[number] += int(gone)
        expected = [gone / right_ones if right_ones else None for gone, right_ones in zip(lost, tried, strict=True)]
        assert shown["attacks"][name] == pytest.approx(expected)
    assert sum(shown["counts"]) == COUNT


@pytest.mark.parametrize("name", ["attacks", "cosine-attacks", "transfer"])
def test_attacks_see_a_chunk_of_images_at_a_time(name, context, tmp_path, monkeypatch):
    """All images of the split, in bounded memory: no call has more than a chunk."""
    sizes = []

    def counting(function):
        def counted(*arguments, **options):
            images = next(each for each in arguments if isinstance(each, torch.Tensor) and each.ndim == 4)
            sizes.append(len(images))
            return function(*arguments, **options)

        return counted

    monkeypatch.setattr(attacks, "evaluate", counting(attacks.evaluate))
    monkeypatch.setattr(attacks, "transfer", counting(attacks.transfer))
    monkeypatch.setattr(passes, "images_of_chunk", lambda _: 32)
    monkeypatch.setattr(Context, "some", None)
    placed = replace(context, trainer=Beside(tmp_path, "digits", "cpu"), kept={})
    given = {"surrogates": {"other": {"seed": 5, "training": {"epochs": 1}}}} if name == "transfer" else {}
    found = row(placed, name, names=["fgsm"], max_images=None, **given)
    assert sum(sizes) == len(context.images) > 100
    assert max(sizes) <= 32
    assert found


def test_transfer_trains_its_surrogate_where_its_own_cell_finds_it(context, tmp_path):
    placed = replace(context, trainer=Beside(tmp_path, "digits", "cpu"), kept={})
    other = {"seed": 5, "training": {"epochs": 1}}
    found = row(placed, "transfer", surrogates={"other": other}, names=["fgsm"], max_images=30)
    sections = {"data": context.recipe.data, "model": context.recipe.model, "objective": context.recipe.objective}
    recipe = Recipe.check({**sections, "augmentation": context.recipe.augmentation, **other})
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name == digest(identity(recipe, "digits"))
    written = (folder / "model.safetensors").stat().st_mtime_ns
    surrogate = train(recipe, "digits", tmp_path, "cpu").predictor.eval()
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    few = context.some(30)
    before = right(context.model, few.images, few.labels)
    after = right(context.model, one_step(surrogate, few.images, few.labels, budget_of("fgsm")), few.labels)
    assert found == {"success.other.fgsm": pytest.approx(float((before & ~after).sum() / before.sum()), **CLOSE)}
    with pytest.raises(SurefootError, match="needs the folder"):
        row(context, "transfer", surrogates={"other": other})


class Unseen(torch.nn.Module):
    """The same answers, out of sight of autograd."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images):
        with torch.no_grad():
            return self.model(images)


def test_a_model_without_gradients_is_attacked_by_its_scores_and_labels(context):
    blind = replace(context, model=Unseen(context.model), kept={})
    found = measure(blind, build("attacks", {"names": ["fgsm", "noise"], "max_images": 6}), "attacks")
    assert list(found.values) == ["noise", "square", "rays"]
    assert found.notes == (attacks.NO_GRADIENT,)
    curve = measure(blind, build("security-curve", {"max_images": 6}), "security-curve")
    assert (curve.values, curve.notes) == ((), (attacks.NO_CURVE,))
    assert build("security-curve", {}).numbers(curve) == {}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("attacks", {"names": ["fgsn"]}, "Unknown attack 'fgsn'. Did you mean 'fgsm'?"),
        ("cosine-attacks", {"names": ["fgsn"]}, "Unknown attack 'fgsn'. Did you mean 'fgsm'?"),
        ("transfer", {"surrogates": {}, "names": ["fgsn"]}, "Unknown attack 'fgsn'. Did you mean 'fgsm'?"),
        ("attacks", {"generator": 1}, "generator must be 2, the attacks' draws of this version, got 1"),
        ("cosine-attacks", {"generator": 1}, "generator must be 2, the attacks' draws of this version, got 1"),
        ("transfer", {"surrogates": {}, "generator": 1}, "generator must be 2, the attacks' draws of this version, got 1"),
    ],
)
def test_what_is_refused(name, options, message):
    with pytest.raises(SurefootError, match=message):
        build(name, options)


def test_a_patch_is_trained_on_other_images(context, sample):
    """By hand, on the first images of the training split; the grey patch covers the same places."""
    found = measure(context, build("patch", {"share": 0.1, "steps": 3, "train_images": 40, "max_images": COUNT}), "patch")
    others = whole(choose(context.data.train, 40, 0), 256)
    assert not set(others.indices.tolist()) & set(sample.indices.tolist())
    patch = train_patch(context.model, others.images, others.labels, 0.1, 3)
    assert list(found.values) == ["patch-10", "grey-patch-10"]
    before = right(context.model, sample.images, sample.labels)
    for name, square in zip(found.values, (patch, torch.full_like(patch, 0.5)), strict=True):
        after = right(context.model, put_patch(sample.images, square, indices=sample.indices), sample.labels)
        assert found.values[name].eps is None
        assert float(found.values[name].robust_accuracy) == pytest.approx(float((before & after).double().mean()), **CLOSE)


def test_a_patch_without_training_images(context):
    """It is trained on what is left of the audited split, and not at all where nothing is."""
    alone = replace(context, data=replace(context.data, train=taken(context.data.train, torch.arange(0))), kept={})
    left = training_pictures(alone, 30, COUNT)
    assert len(left) == 30
    assert not set(left.indices.tolist()) & set(alone.some(COUNT).indices.tolist())
    none = measure(alone, build("patch", {"max_images": None}), "patch")
    assert none.values == {}
    assert none.notes == (ALONE,)


@pytest.mark.parametrize(("name", "eps"), [("sparse-weak", 3), ("sparse-strong", 12)])
def test_sparse_attacks_stay_in_l1(context, sample, name, eps):
    """Their budget is a sum over pixels, so it is no number of grey levels."""
    few, labels = sample.images[:4], sample.labels[:4]
    found = partial(find_attack(name, early_stop=True), iterations=10)(context.model, few, labels)
    assert (found - few).abs().sum((1, 2, 3)).max() <= eps + 1e-3
    assert budget_of(name) is None
