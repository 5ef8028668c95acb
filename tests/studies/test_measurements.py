"""Every measurement against its definition, written out here once more, on one small trained model."""

import math
from statistics import fmean

import pytest
import torch
from torch.nn import functional as F

from surefoot.attacks import evaluate
from surefoot.corruptions import add_gaussian_noise, corrupt
from surefoot.corruptions.alexnet import ALEXNET, is_fair
from surefoot.corruptions.families import COMMON15
from surefoot.errors import SurefootError
from surefoot.studies import corruption_measurements
from surefoot.studies.answer_measurements import clean, logit_statistics, scaled_features, temperature, validation
from surefoot.studies.attack_measurements import attacks, transfers
from surefoot.studies.corruption_measurements import corruptions, noise_levels, occlusions
from surefoot.studies.cost_measurements import step_cost
from surefoot.studies.measuring import MEASUREMENTS, check_measure, default_options
from surefoot.studies.probe_measurements import linear_probe
from surefoot.studies.subjects import Subject

COUNT = 60


@pytest.fixture(scope="module")
def subject(run, digits):
    return Subject(run.recipe, run.model, run.objective, run.predictor, digits, torch.device("cpu"))


@pytest.fixture(scope="module")
def sample(subject):
    return subject.images(COUNT)


def accuracy(subject, images, labels):
    with torch.no_grad():
        return float((subject.predictor(images).argmax(1) == labels).double().mean())


def test_the_sample_is_stratified_and_always_the_same(subject, sample, digits):
    images, labels, indices = sample
    assert len(labels) == COUNT
    assert labels.bincount(minlength=10).min() >= COUNT // 10 - 1
    assert torch.equal(subject.images(COUNT)[2], indices)
    place = {int(index): number for number, index in enumerate(digits.test.indices)}
    rows = [place[int(index)] for index in indices]
    assert torch.equal(images, digits.test.images[rows].float() / 255)
    assert torch.equal(labels, digits.test.labels[rows])
    assert len(subject.images(None)[1]) == len(digits.test)


def test_clean_and_validation(subject, digits):
    for found, split in ((clean(subject), digits.test), (validation(subject.without_test()), digits.validation)):
        with torch.no_grad():
            logits = subject.predictor(split.images.float() / 255)
        assert found["accuracy"] == pytest.approx(float((logits.argmax(1) == split.labels).double().mean()))
        assert found["nll"] == pytest.approx(float(F.cross_entropy(logits, split.labels)), rel=1e-4)


def test_errors_beside_alexnets(subject, monkeypatch):
    """mCE (Hendrycks and Dietterich 2019): only on ImageNet, each error over AlexNet's, then the mean of the fifteen."""
    found = corruptions(subject, COMMON15, (1, 2, 3, 4, 5), max_images=20, each=True)
    assert "mce" not in found
    monkeypatch.setattr(corruption_measurements, "is_fair", lambda _classes, _size, levels: is_fair(1000, (224, 224), levels))
    on_imagenet = corruptions(subject, COMMON15, (1, 2, 3, 4, 5), max_images=20, each=True)
    errors = {name: (1 - found[f"accuracy.{name}"]) / ALEXNET[name] for name in COMMON15}
    assert on_imagenet["mce"] == pytest.approx(sum(errors.values()) / 15)
    assert on_imagenet["ce.fog"] == pytest.approx(errors["fog"])
    assert "mce" not in corruptions(subject, COMMON15[:14], (1,), max_images=10)


def test_temperature_lowers_nll_where_it_was_fitted_and_keeps_accuracy(subject):
    found = temperature(subject)
    assert found["temperature"] > 0
    assert found["accuracy"] == clean(subject)["accuracy"]
    scaled = subject.calibration.logits / found["temperature"]
    assert F.cross_entropy(scaled, subject.calibration.labels) < F.cross_entropy(
        subject.calibration.logits, subject.calibration.labels
    )


def test_logit_statistics(subject):
    logits, labels = subject.clean.logits, subject.clean.labels
    margins = [
        float(row[y] - max(v for k, v in enumerate(row.tolist()) if k != y)) for row, y in zip(logits, labels, strict=True)
    ]
    found = logit_statistics(subject)
    assert found["margin"] == pytest.approx(fmean(margins), rel=1e-4)
    assert found["norm"] == pytest.approx(fmean(float(row.norm()) for row in logits), rel=1e-4)
    assert found["largest"] == pytest.approx(fmean(float(row.max()) for row in logits), rel=1e-4)


def test_scaled_features(subject):
    found = scaled_features(subject)
    assert found["ece_before"] == clean(subject)["ece"]
    assert found["scale"] > 0


def test_corruptions_are_means_over_their_cells(subject, sample):
    images, labels, indices = sample
    names, severities = ["gaussian_noise", "fog", "contrast"], [2, 5]
    by_hand = {
        name: fmean(accuracy(subject, corrupt(images, name, s, indices=indices), labels) for s in severities) for name in names
    }
    found = corruptions(subject, names, severities, max_images=COUNT, each=True)
    for name in names:
        assert found[f"accuracy.{name}"] == pytest.approx(by_hand[name])
    assert found["accuracy"] == pytest.approx(fmean(by_hand.values()))
    assert found["error"] == pytest.approx(1 - fmean(by_hand.values()))
    assert found["accuracy.noise"] == pytest.approx(by_hand["gaussian_noise"])
    assert found["accuracy.no_overlap"] == pytest.approx((by_hand["fog"] + by_hand["contrast"]) / 2)
    assert "accuracy.blur" not in found
    undisturbed = accuracy(subject, images, labels)
    assert found["drop"] == pytest.approx((undisturbed - found["accuracy"]) / undisturbed)
    assert found["rms"] >= found["ece"]  # cell by cell, by Jensen
    with pytest.raises(SurefootError, match="Unknown corruption 'fogg'. Did you mean 'fog'?"):
        corruptions(subject, ["fogg"])


def test_noise_levels(subject, sample):
    images, labels, indices = sample
    found = noise_levels(subject, [0, 40], draws=2, max_images=COUNT)
    noisy = [accuracy(subject, add_gaussian_noise(images, 40 / 255, seed=seed, indices=indices), labels) for seed in (0, 1)]
    assert found["accuracy.0"] == accuracy(subject, images, labels)
    assert found["accuracy.40"] == pytest.approx(fmean(noisy))
    assert found["draws.40"] == pytest.approx(abs(noisy[0] - noisy[1]) / math.sqrt(2))
    with pytest.raises(SurefootError, match="Unknown distribution 'gausian'. Did you mean 'gaussian'?"):
        noise_levels(subject, distribution="gausian")


def test_occlusions(subject, sample):
    images, labels, indices = sample
    found = occlusions(subject, noise=30, draws=1, max_images=COUNT)
    hidden = corrupt(images, "occlusion", 4, indices=indices)
    assert found["accuracy.occlusion"] == accuracy(subject, hidden, labels)
    both = add_gaussian_noise(hidden, 30 / 255, indices=indices)
    assert found["accuracy.occlusion+noise"] == accuracy(subject, both, labels)
    chain = corrupt(images, "down_up_sampling+stripes", 4, indices=indices)
    assert found["accuracy.down_up+stripes"] == accuracy(subject, chain, labels)
    assert len(found) == 6


def test_attacks(subject, sample):
    images, labels, _ = sample
    found = attacks(subject, ["fgsm"], max_images=COUNT)
    result = evaluate(subject.predictor, images, labels, "fgsm")
    assert found == {"success.fgsm": result.success_rate, "robust.fgsm": result.robust_accuracy}


def test_transfer_trains_its_surrogate_where_its_own_cell_finds_it(subject, tmp_path):
    from dataclasses import replace

    placed = replace(subject, work=tmp_path, data_label="digits")
    sections = {"other": {"seed": 5, "training": {"epochs": 1}}, "same": {}}
    same = transfers(placed, {"other": sections["other"]}, ["fgsm"], max_images=30)
    assert 0 <= same["success.other.fgsm"] <= 1
    assert len(list((tmp_path / "runs").glob("*/model.safetensors"))) == 1
    with pytest.raises(SurefootError, match="needs the folder"):
        transfers(subject, sections)


def test_cost_of_cross_entropy_is_one(subject):
    """Medians of pairs; generous, since other processes share the machine."""
    from dataclasses import replace

    from surefoot.objectives import AugMix

    assert 0.5 < step_cost(subject, steps=5, batch_size=32)["relative"] < 2
    assert step_cost(replace(subject, objective=AugMix()), steps=5, batch_size=32)["relative"] > 1.5


def test_probe_of_the_same_data(subject):
    """Features that were trained on digits separate digits, far above chance."""
    assert linear_probe(subject, "digits")["accuracy"] > 0.5


@pytest.mark.parametrize("name", MEASUREMENTS.names)
def test_every_measurement_has_options_with_defaults(name):
    given = {"surrogates": {"a": {}}} if name == "transfer" else {}
    assert check_measure(name, given)[0] == name
    assert all(value is None or isinstance(value, (int, float, str, bool, tuple)) for value in default_options(name).values())
