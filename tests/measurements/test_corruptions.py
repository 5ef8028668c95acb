"""Rows of a study about corruptions, noise and occlusions, each by a second implementation, on one small trained model."""

import math
from dataclasses import replace
from statistics import fmean, stdev
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from by_hand import CLOSE, COUNT, best_factor, logits_of, pixels, row, scores, share_right, study_context
from torch import nn

from surefoot.auditing.passes import measure
from surefoot.calibration.bins import adaptive_rms
from surefoot.corruptions import add_gaussian_noise, add_uniform_noise, corrupt
from surefoot.corruptions.families import ALEXNET, COMMON15, is_fair
from surefoot.errors import SurefootError
from surefoot.measurements import corruptions
from surefoot.measurements.registry import build
from surefoot.measurements.scores import mean_over, score


def accuracy(context, images, labels):
    return share_right(context.model, images, labels)


@pytest.mark.parametrize("bins", [15, 10])
def test_corruptions_are_means_over_their_cells(context, sample, digits, bins):
    names, severities = ["gaussian_noise", "fog", "contrast", "spatter"], [2, 5]
    factor = best_factor(logits_of(context.model, pixels(digits.calibration)), digits.calibration.labels)
    by_name = {}
    for name in names:
        images = [corrupt(sample.images, name, severity, seed=0, indices=sample.indices) for severity in severities]
        by_name[name] = [logits_of(context.model, each).double().numpy() for each in images]
    cells = [scores(each, sample.labels, bins) for name in names for each in by_name[name]]
    expected = {score: fmean(cell[score] for cell in cells) for score in ("accuracy", "ece", "rms", "nll")}
    scaled = [scores(factor * each, sample.labels, bins) for name in names for each in by_name[name]]
    expected["ece_scaled"] = fmean(cell["ece"] for cell in scaled)
    right = {name: fmean(scores(each, sample.labels)["accuracy"] for each in by_name[name]) for name in names}
    expected |= {f"accuracy.{name}": value for name, value in right.items()}
    expected["accuracy.noise"] = right["gaussian_noise"]
    expected["accuracy.weather"] = (right["fog"] + right["spatter"]) / 2
    expected["accuracy.digital"] = right["contrast"]
    expected["accuracy.no_overlap"] = (right["fog"] + right["spatter"] + right["contrast"]) / 3
    expected["clean_accuracy"] = accuracy(context, sample.images, sample.labels)
    expected["drop"] = (expected["clean_accuracy"] - expected["accuracy"]) / expected["clean_accuracy"]
    expected["error"] = 1 - expected["accuracy"]
    together = np.concatenate([each for name in names for each in by_name[name]])
    expected["rms_pooled"] = scores(together, sample.labels.repeat(8), bins)["rms"]
    found = row(context, "corruptions", names=names, severities=severities, max_images=COUNT, bins=bins, each=True)
    assert found == pytest.approx(expected, **CLOSE)
    assert found["rms"] >= found["ece"]  # cell by cell, by Jensen
    few = row(context, "corruptions", names=names, severities=severities, max_images=COUNT, bins=bins)
    assert few == {name: value for name, value in found.items() if name.removeprefix("accuracy.") not in names}


def test_what_a_calibrated_model_would_show_and_an_interval_on_both_sides(context, sample, digits):
    """By drawing labels from the model's own probabilities; the interval is not that of draws, which lie above the truth."""
    few = replace(context, intervals=400)
    names, severities, count = ["gaussian_noise", "contrast"], [3, 5], 40
    measured = build("corruptions", {"names": names, "severities": severities, "max_images": count})
    found = measure(few, measured, "corruptions").values
    rng, eces = np.random.default_rng(0), []
    some = few.some(count)
    cells = [corrupt(some.images, name, severity, seed=0, indices=some.indices) for name in names for severity in severities]
    sure = [logits_of(few.model, images).double().softmax(1).max(1).values.numpy() for images in cells]
    for _ in range(400):
        chance = rng.random(count)
        right = [chance < each for each in sure]
        eces.append(fmean(binned_gap(each, own) for each, own in zip(sure, right, strict=True)))
    low, high = np.quantile(eces, [0.025, 0.975])
    assert found.ece_if_calibrated == pytest.approx((low, high), abs=0.015)
    assert found.mean_ece.low < found.mean_ece < found.mean_ece.high


def test_the_mean_ece_of_a_calibrated_model_may_be_nothing():
    """40 conditions of 32 images: no plain percentile of the draws is near the truth, which is 0."""
    rng, drawing = np.random.default_rng(0), SimpleNamespace(seed=0, intervals=300)
    rows = []
    for _ in range(40):
        sure = rng.uniform(0.3, 1, 32)
        known = {"confidence": sure, "correct": rng.random(32) < sure, "nll": sure, "brier": sure}
        rows.append({**known, "label": np.zeros(32, int), "index": np.arange(32)})
    found = mean_over(score(rows, ("ece", "rms"), drawing), "ece")
    assert 0.1 < found < 0.25
    assert found.low < 0.03
    assert found.high >= found


def binned_gap(sure, right):
    bins = np.minimum((sure * 15).astype(int), 14)
    return sum(abs((sure - right)[bins == b].sum()) for b in range(15)) / len(sure)


def test_bins_of_equally_many_images(context, sample):
    """Beside the other numbers, which stay: of each cell and of all together; clean images too."""
    names, size = ["fog", "contrast"], 7

    def error(logits):
        sure, predicted = logits.double().softmax(1).max(1)
        return adaptive_rms(sure.numpy(), (predicted == sample.labels.repeat(len(logits) // COUNT)).numpy(), size)

    images = [corrupt(sample.images, name, 3, seed=0, indices=sample.indices) for name in names]
    cells = [logits_of(context.model, each) for each in images]
    options = {"names": names, "severities": [3], "max_images": COUNT}
    found, usual = (row(context, "corruptions", **options, images_per_bin=each) for each in (size, None))
    assert found["adaptive_rms"] == pytest.approx(fmean(map(error, cells)), **CLOSE)
    assert found["adaptive_rms_pooled"] == pytest.approx(error(torch.cat(cells)), **CLOSE)
    assert usual == {name: value for name, value in found.items() if "adaptive" not in name}
    clean = row(context, "clean", images_per_bin=size)
    known = context.clean
    assert clean["adaptive_rms"] == pytest.approx(adaptive_rms(known.confidences.numpy(), known.correct.numpy(), size))
    assert row(context, "clean") == {name: value for name, value in clean.items() if name != "adaptive_rms"}


def test_all_images_at_a_severity_in_between(context, digits):
    found = row(context, "corruptions", names=["frost"], severities=[1.5])
    frosted = corrupt(pixels(digits.test), "frost", 1.5, indices=digits.test.indices)
    by_hand = scores(logits_of(context.model, frosted), digits.test.labels)
    assert (found["accuracy"], found["ece"]) == pytest.approx((by_hand["accuracy"], by_hand["ece"]), **CLOSE)
    assert found["clean_accuracy"] == row(context, "clean")["accuracy"]


def test_errors_beside_alexnets(context, monkeypatch):
    """mCE (Hendrycks and Dietterich 2019): only on ImageNet, each error over AlexNet's, then the mean of the fifteen."""
    asked = {"names": COMMON15, "severities": (1, 2, 3, 4, 5), "max_images": 20, "each": True}
    found = row(context, "corruptions", **asked)
    assert "mce" not in found
    monkeypatch.setattr(corruptions, "is_fair", lambda _classes, _size, levels: is_fair(1000, (224, 224), levels))
    on_imagenet = row(context, "corruptions", **asked)
    errors = {name: (1 - found[f"accuracy.{name}"]) / ALEXNET[name] for name in COMMON15}
    assert on_imagenet["mce"] == pytest.approx(sum(errors.values()) / 15)
    assert {name: on_imagenet[f"ce.{name}"] for name in COMMON15} == pytest.approx(errors)
    assert "mce" not in row(context, "corruptions", names=COMMON15[:14], severities=(1,), max_images=10)


class AlwaysWrong(nn.Module):
    """Sure of class 0."""

    def forward(self, images):
        return torch.eye(10)[0].expand(len(images), 10) + 0 * images.mean()


def test_no_drop_where_nothing_was_right(run, digits):
    from dataclasses import replace

    where = digits.test.labels > 0
    test = replace(digits.test, **{name: getattr(digits.test, name)[where] for name in ("images", "labels", "indices")})
    context = replace(study_context(run, digits), model=AlwaysWrong(), images=test, kept={})
    found = row(context, "corruptions", names=["fog"], severities=[1], max_images=20)
    assert (found["clean_accuracy"], found["error"]) == (0, 1)
    assert math.isnan(found["drop"])


@pytest.mark.parametrize(("kind", "add"), [("gaussian", add_gaussian_noise), ("uniform", add_uniform_noise)])
def test_noise_levels(context, sample, kind, add):
    images, labels, indices = sample.images, sample.labels, sample.indices
    found = row(context, "noise", levels=[2.5, 40], distribution=kind, draws=2, max_images=COUNT)
    noisy = [accuracy(context, add(images, 40 / 255, seed=seed, indices=indices), labels) for seed in (0, 1)]
    assert list(found) == ["accuracy.0", "accuracy.2.5", "draws.2.5", "accuracy.40", "draws.40"]
    assert found["accuracy.0"] == accuracy(context, images, labels)
    assert found["accuracy.40"] == pytest.approx(fmean(noisy), **CLOSE)
    assert found["draws.40"] == pytest.approx(abs(noisy[0] - noisy[1]) / math.sqrt(2), **CLOSE)
    once = row(context, "noise", levels=[40], distribution=kind, draws=1, max_images=COUNT)
    assert (once["accuracy.40"], once["draws.40"]) == (pytest.approx(noisy[0]), 0)


def test_a_level_asked_for_twice_is_measured_once(context):
    """Also where the conditions are more than a part holds."""
    asked = {"levels": [30, 30], "draws": 11, "max_images": 20}
    assert row(context, "noise", **asked) == row(context, "noise", **{**asked, "levels": [30]})


def test_occlusions(context, sample):
    images, labels, indices = sample.images, sample.labels, sample.indices
    found = row(context, "occlusions", noise=30, severity=3, draws=2, max_images=COUNT)

    def noisy(pixels, seed):
        return add_gaussian_noise(pixels, 30 / 255, seed=seed, indices=indices)

    def draws(chain, before=False, after=False):
        values = []
        for seed in (0, 1):
            changed = corrupt(noisy(images, seed) if before else images, chain, 3, seed=seed, indices=indices)
            values.append(accuracy(context, noisy(changed, seed) if after else changed, labels))
        return values

    drawn = {
        "occlusion": draws("occlusion"),
        "occlusion+noise": draws("occlusion", after=True),
        "down_up": draws("down_up_sampling"),
        "down_up+occlusion": draws("down_up_sampling+occlusion"),
        "stripes": draws("stripes"),
        "down_up+stripes": draws("down_up_sampling+stripes"),
    }

    def expected(drawn):
        means = {f"accuracy.{kind}": fmean(values) for kind, values in drawn.items()}
        return means | {f"draws.{kind}": stdev(values) for kind, values in drawn.items()}

    assert found == pytest.approx(expected(drawn), **CLOSE)
    assert drawn["down_up"][0] == drawn["down_up"][1]  # nothing is drawn
    kinds = ["noise+occlusion", "occlusion+noise"]
    both = row(context, "occlusions", noise=30, severity=3, draws=2, max_images=COUNT, kinds=kinds)
    known = {"noise+occlusion": draws("occlusion", before=True), "occlusion+noise": drawn["occlusion+noise"]}
    assert both == pytest.approx(expected(known), **CLOSE)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("corruptions", {"names": ["fogg"]}, "Unknown corruption 'fogg'. Did you mean 'fog'?"),
        ("corruptions", {"names": []}, "names and severities must be at least one"),
        ("corruptions", {"generator": 1}, "generator must be 2, the corruptions of this version, got 1"),
        ("noise", {"distribution": "gausian"}, "Unknown distribution 'gausian'. Did you mean 'gaussian'?"),
        ("noise", {"draws": 0}, "draws must be at least 1, got 0"),
        ("occlusions", {"draws": 0}, "draws must be at least 1, got 0"),
        ("occlusions", {"kinds": ["stripe"]}, "Unknown occlusion 'stripe'. Did you mean 'stripes'?"),
    ],
)
def test_what_is_refused(name, options, message):
    with pytest.raises(SurefootError, match=message):
        build(name, options)
