import logging

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from test_scoring import random_predictions
from torch import nn
from torch.nn import functional as F

from surefoot import calibration
from surefoot.calibration import (
    Predictions,
    cross_fit_temperature,
    fit_bias,
    fit_isotonic,
    fit_temperature,
    fit_vector,
    load_calibrator,
    scale_features,
    scores,
)
from surefoot.calibration.arguments import METHODS
from surefoot.calibration.per_class import rising_fit
from surefoot.errors import SurefootError

HEAD = nn.Linear(3, 5)


def feature_scaling(predictions):
    return scale_features(predictions, HEAD)


FITS = {
    "temperature": fit_temperature,
    "feature-scaling": feature_scaling,
    "vector": fit_vector,
    "bias": fit_bias,
    "isotonic": fit_isotonic,
}


def nll(logits, labels):
    return float(F.cross_entropy(logits.double(), labels))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(3, 400), st.sampled_from([2, 3, 10, 100, 1000]), st.integers(0, 1000), st.sampled_from([0.05, 1.0, 6.0, 300.0])
)
def test_the_temperature_is_the_minimiser(count, classes, seed, sharpness):
    given_ = random_predictions(count, classes, seed, sharpness)
    found = fit_temperature(given_)
    if found.note:
        return
    best = nll(given_.logits / found.temperature, given_.labels)
    for factor in (0.999, 1.001):
        assert nll(given_.logits / (found.temperature * factor), given_.labels) > best
    assert found.passes < 30
    tripled = fit_temperature(Predictions.from_logits(given_.logits * 3, given_.labels)).temperature
    assert tripled == pytest.approx(3 * found.temperature, rel=1e-12)


def test_the_slope_is_zero_to_machine_precision():
    given_ = random_predictions(3000, 20, 0)
    scale = torch.tensor(1 / fit_temperature(given_).temperature, dtype=torch.float64, requires_grad=True)
    F.cross_entropy(given_.logits * scale, given_.labels).backward()
    assert abs(float(scale.grad)) < 1e-14


@pytest.mark.parametrize("sharpness", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("noise", [0.3, 1.0, 4.0])
def test_few_passes(sharpness, noise):
    """From nearly always right to mostly wrong."""
    draws = torch.Generator().manual_seed(0)
    logits = torch.randn(12_000, 10, generator=draws) * 3
    labels = (logits + noise * torch.randn(12_000, 10, generator=draws)).argmax(1)
    assert fit_temperature(Predictions.from_logits(logits * sharpness, labels)).passes < 10


def test_few_passes_with_a_single_mistake():
    logits = torch.randn(12_000, 10, generator=torch.Generator().manual_seed(0)) * 3
    labels = logits.argmax(1)
    labels[5] = logits[5].topk(2).indices[1]
    found = fit_temperature(Predictions.from_logits(logits, labels))
    assert found.note == ""
    assert found.passes < 10


def test_labels_drawn_from_the_predictions_have_temperature_one():
    draws = torch.Generator().manual_seed(0)
    logits = torch.randn(20_000, 6, generator=draws) * 2
    labels = torch.multinomial(logits.softmax(1), 1, generator=draws).squeeze(1)
    assert fit_temperature(Predictions.from_logits(logits * 4, labels)).temperature == pytest.approx(4, rel=0.03)


def test_two_classes_by_hand():
    """Logit differences of +-2, three of four right: the optimal confidence is 3/4, so 2 / T = log 3."""
    given_ = Predictions.from_logits(torch.tensor([[2.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))
    assert fit_temperature(given_).temperature == pytest.approx(2 / np.log(3), rel=1e-12)
    assert fit_bias(given_).apply(given_.logits).softmax(1)[0, 0] == pytest.approx(0.75, abs=1e-4)


def test_always_right_says_so_and_stops_at_the_stated_bound(caplog):
    logits = torch.eye(4).repeat(2, 1) * 5
    given_ = Predictions.from_logits(logits, torch.arange(8) % 4)
    with caplog.at_level(logging.WARNING):
        found = fit_temperature(given_)
    assert "Every one of 8 images is right, so NLL has no minimum" in found.note
    assert found.note in caplog.text
    calibrated = found.calibrate(given_, allow_leakage=True)
    assert float(calibrated.confidences.mean()) == pytest.approx(9 / 10, abs=1e-6)
    tripled = fit_temperature(Predictions.from_logits(logits * 3, given_.labels)).temperature
    assert tripled == pytest.approx(3 * found.temperature, rel=1e-9)
    assert "has no minimum" in fit_vector(given_).note


def test_worse_than_guessing_and_no_logits_at_all():
    wrong = Predictions.from_logits(torch.eye(3) * 5, torch.tensor([1, 2, 0]))
    found = fit_temperature(wrong)
    assert "infinite temperature" in found.note
    assert float(found.apply(wrong.logits).softmax(1).max()) == pytest.approx(1 / 3, abs=1e-3)
    flat = fit_temperature(Predictions.from_logits(torch.ones(3, 2), torch.tensor([0, 1, 1])))
    assert (flat.temperature, "all equal" in flat.note) == (1.0, True)


def test_temperature_one_is_the_identity():
    from surefoot.calibration import Temperature

    given_ = random_predictions(20, 5, 0)
    one = Temperature(temperature=1.0, fitted_on=fit_temperature(given_).fitted_on)
    assert torch.equal(one.apply(given_.logits), given_.logits)


@pytest.mark.parametrize("sharpness", [0.5, 4.0])
def test_feature_scaling_scales_what_enters_the_head(sharpness):
    draws = torch.Generator().manual_seed(0)
    features = torch.randn(600, 3, generator=draws, dtype=torch.float64) * sharpness
    head = nn.Linear(3, 5, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.randn(5, 3, generator=draws))
        head.bias.copy_(torch.randn(5, generator=draws))
        logits = head(features)
        labels = torch.multinomial((logits / 2).softmax(1), 1, generator=draws).squeeze(1)
        given_ = Predictions.from_logits(logits, labels)
        found = scale_features(given_, head)
        assert torch.allclose(found.apply(logits), head(found.scale * features), atol=1e-12)
        best = nll(head(found.scale * features), labels)
        assert all(nll(head(found.scale * f * features), labels) > best for f in (0.999, 1.001))
        head.bias.zero_()
        plain = Predictions.from_logits(head(features), labels)
    assert scale_features(plain, head).scale == pytest.approx(1 / fit_temperature(plain).temperature, rel=1e-12)
    bare = nn.Linear(3, 5, bias=False)
    assert scale_features(plain, bare).scale == pytest.approx(1 / fit_temperature(plain).temperature, rel=1e-12)
    with pytest.raises(SurefootError, match="head must be of 5 classes, got 7"):
        scale_features(plain, nn.Linear(3, 7))


def test_vector_and_bias_are_minimisers():
    given_ = random_predictions(900, 5, 2)
    vector, bias = fit_vector(given_), fit_bias(given_)
    at = nll(vector.apply(given_.logits), given_.labels)
    assert at < nll(fit_temperature(given_).apply(given_.logits), given_.labels)
    assert at < nll(bias.apply(given_.logits), given_.labels) < nll(given_.logits, given_.labels)
    for calibrator in (vector, bias):
        moved = [
            t.clone().requires_grad_() for t in (getattr(calibrator, "factors", torch.ones(5).double()), calibrator.offsets)
        ]
        F.cross_entropy(given_.logits * moved[0] + moved[1], given_.labels).backward()
        assert float(moved[1].grad.abs().max()) < 1e-5
    assert float(moved[0].grad.abs().max()) > 1e-3  # the factors of bias are not fitted
    assert vector.offsets.mean() == pytest.approx(0, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(0, 1000), st.booleans())
def test_rising_fit_against_scikit_learn(count, seed, ties):
    random = np.random.default_rng(seed)
    x = random.random(count).round(1 if ties else 15)
    y = (random.random(count) < x).astype(float)
    knots, values = rising_fit(torch.tensor(x), torch.tensor(y))
    expected = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    asked = np.concatenate([x, np.linspace(-0.1, 1.1, 50)])
    assert np.interp(asked, knots.numpy(), values.numpy()) == pytest.approx(expected.predict(asked), abs=1e-9)


def test_isotonic_is_one_fit_for_each_class_divided_by_the_sum():
    given_, others = random_predictions(400, 4, 0), random_predictions(50, 4, 1)
    p, q = (x.logits.softmax(1).numpy() for x in (given_, others))
    columns = [
        IsotonicRegression(out_of_bounds="clip").fit(p[:, c], given_.labels.numpy() == c).predict(q[:, c]) for c in range(4)
    ]
    expected = np.maximum(np.stack(columns, 1), 1e-6)
    expected /= expected.sum(1, keepdims=True)
    assert fit_isotonic(given_).apply(others.logits).exp().numpy() == pytest.approx(expected, abs=1e-9)


def skewed_predictions(count, classes, seed):
    """Too sure, and too fond of the first class."""
    found = random_predictions(count, classes, seed, sharpness=4.0, dtype=torch.float32)
    return Predictions.from_logits(found.logits + torch.eye(classes)[0] * 2, found.labels)


@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("classes", [2, 5])
def test_every_calibrator_keeps_its_contract(method, classes, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "HEAD", nn.Linear(3, classes))
    given_, others = (skewed_predictions(count, classes, seed) for seed, count in enumerate((800, 300)))
    found = FITS[method](given_)
    fixed = found.apply(others.logits)
    assert (fixed.shape, fixed.dtype) == (others.logits.shape, others.logits.dtype)
    before, after = (scores(p, intervals=0) for p in (others, found.calibrate(others)))
    assert after.nll < before.nll
    if method != "bias":
        assert after.ece < before.ece
    if found.keeps_order:
        assert after.accuracy == before.accuracy
        assert torch.equal(fixed.argmax(1), others.classes)
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, classes)).eval()
    images = torch.rand(3, 3, 2, 2)
    with torch.no_grad():
        assert torch.equal(found.module(net)(images), found.apply(net(images)))
    found.save(tmp_path / "r.safetensors")
    again = load_calibrator(tmp_path / "r.safetensors")
    assert type(again) is type(found)
    assert torch.equal(again.apply(others.logits), fixed)
    assert again.fitted_on.digest == found.fitted_on.digest
    assert METHODS.name_of(type(found)) == method


def test_only_temperature_keeps_the_order_whatever_the_logits():
    assert [name for name in METHODS.names if METHODS.load(name).keeps_order] == ["temperature"]


def with_indices(given_, start=0):
    return Predictions.from_logits(given_.logits, given_.labels, indices=torch.arange(start, start + len(given_)))


def test_fitting_and_scoring_on_the_same_images_is_refused():
    given_ = with_indices(random_predictions(100, 3, 0))
    found = fit_temperature(given_)
    with pytest.raises(SurefootError, match=r"100 of 100 images were fitted on, .* allow_leakage=True"):
        found.calibrate(given_)
    some = with_indices(random_predictions(100, 3, 1), start=90)
    with pytest.raises(SurefootError, match="10 of 100 images were fitted on"):
        found.calibrate(some)
    assert len(found.calibrate(some, allow_leakage=True)) == 100
    assert len(found.calibrate(with_indices(random_predictions(100, 3, 1), start=100))) == 100
    bare = random_predictions(100, 3, 0)
    with pytest.raises(SurefootError, match="100 of 100 images were fitted on"):
        fit_temperature(bare).calibrate(bare)


def test_in_cross_fitting_no_image_is_scored_by_a_temperature_that_saw_it():
    given_ = with_indices(random_predictions(301, 4, 0, sharpness=6.0))
    found = cross_fit_temperature(given_, seed=3)
    for fold in (0, 1):
        mine = (found.folds == fold).nonzero().squeeze(1)
        assert found.fits[fold].fitted_on.overlap(given_[mine]) == 0
        assert len(found.fits[fold].fitted_on.indices) + len(mine) == 301
        assert torch.equal(found.calibrate(given_).logits[mine], given_.logits[mine] / found.fits[fold].temperature)
        assert (given_.labels[mine].bincount() - given_.labels.bincount() / 2).abs().max() <= 1
    assert scores(found.calibrate(given_), intervals=0).nll < scores(given_, intervals=0).nll
    assert torch.equal(cross_fit_temperature(given_, seed=3).folds, found.folds)
    with pytest.raises(SurefootError, match="at least two images for two folds, got 1"):
        cross_fit_temperature(given_[:1])
    with pytest.raises(SurefootError, match="of the 301 images of the fit, got 300"):
        found.calibrate(given_[:300])


@pytest.mark.parametrize("method", ["vector", "bias", "isotonic"])
def test_a_class_that_never_occurs(method):
    given_ = Predictions.from_logits(torch.randn(6, 3), torch.tensor([0, 2] * 3))
    with pytest.raises(
        SurefootError, match=rf"every class for the method '{method}'; 1 of 3 never occur among 6 images \(first: 1\)"
    ):
        FITS[method](given_)


@pytest.mark.parametrize("method", FITS)
def test_no_images(method):
    with pytest.raises(SurefootError, match="predictions must be of at least one image, got 0"):
        FITS[method](random_predictions(3, 5, 0)[:0])


def test_a_file_that_is_no_calibrator(tmp_path):
    from surefoot.files import write_tensors

    write_tensors(tmp_path / "x.safetensors", {"x": torch.zeros(1)})
    with pytest.raises(SurefootError, match="names no calibration method"):
        load_calibrator(tmp_path / "x.safetensors")


@pytest.mark.parametrize("method", FITS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_what_is_given_is_left_alone(method, dtype):
    draws = torch.Generator().manual_seed(0)
    logits = (torch.randn(60, 5, generator=draws) * 3).to(dtype)
    given_ = Predictions.from_logits(logits.clone(), torch.arange(60) % 5)
    found = FITS[method](given_)
    assert found.apply(given_.logits).dtype == dtype
    assert torch.equal(given_.logits, logits)


def test_half_precision_is_calibrated_in_float32():
    """Divided in half precision, neighbouring logits become equal, and the first of them is the answer."""
    given_ = random_predictions(30_000, 10, 0, dtype=torch.float32)
    half = Predictions.from_logits((0.65 * given_.logits).bfloat16(), given_.labels)
    found = fit_temperature(half)
    assert not torch.equal(found.apply(half.logits).argmax(1), half.classes)
    for calibrated in (found.calibrate(half, allow_leakage=True), cross_fit_temperature(half).calibrate(half)):
        assert torch.equal(calibrated.classes, half.classes)
    full = Predictions.from_logits(half.logits.float(), given_.labels)
    head = nn.Linear(3, 10)
    assert scale_features(half, head).scale == pytest.approx(scale_features(full, head).scale, rel=1e-12)


def test_the_former_names_are_the_same_objects():
    assert calibration.Repair is calibration.Calibrator
    assert calibration.load_repair is calibration.load_calibrator
    fitted = fit_temperature(Predictions.from_logits(torch.eye(3), torch.arange(3)))
    model = fitted.module(torch.nn.Identity())
    assert model.repair is model.calibrator is fitted
