"""Rows of a study about predictions, each by a second implementation, on one small trained model."""

import numpy as np
import pytest
import torch
from by_hand import best_factor, logits_of, pixels, row, scores, study_context

from surefoot.errors import SurefootError
from surefoot.measurements.context import Hidden

CLOSE = {"abs": 1e-6}
SCORES = ("accuracy", "nll", "brier", "ece", "rms", "signed_error", "debiased_ece")


@pytest.fixture(scope="module")
def logits(run, digits):
    """By split."""
    return {name: logits_of(run.predictor, pixels(digits.split(name))) for name in ("calibration", "validation", "test")}


@pytest.mark.parametrize("bins", [15, 7])
def test_clean(context, logits, digits, bins):
    found = row(context, "clean", bins=bins)
    assert tuple(found) == SCORES
    assert found == pytest.approx(scores(logits["test"], digits.test.labels, bins), **CLOSE)


def test_temperature_is_of_the_calibration_split(context, logits, digits):
    found = row(context, "temperature")
    factor = best_factor(logits["calibration"], digits.calibration.labels)
    assert found["temperature"] == pytest.approx(1 / factor, rel=1e-6)
    after = scores(logits["test"].double() / found["temperature"], digits.test.labels)
    assert {name: found[name] for name in SCORES} == pytest.approx(after, **CLOSE)
    assert found["accuracy"] == row(context, "clean")["accuracy"]


def test_validation_is_measured_without_the_test_split(context, logits, digits):
    hidden = context.without_test()
    found = row(hidden, "validation")
    assert found == pytest.approx(scores(logits["validation"], digits.validation.labels), **CLOSE)
    assert isinstance(hidden.data.test, Hidden)
    with pytest.raises(SurefootError, match="no images"):
        row(hidden, "clean")


def test_scaled_features(context, logits, digits, run):
    found = row(context, "feature-scaling")
    bias = run.model.head.bias.detach().double().numpy()
    factor = best_factor(logits["calibration"], digits.calibration.labels, bias)
    assert found["scale"] == pytest.approx(factor, rel=1e-6)
    assert found["ece_before"] == row(context, "clean")["ece"]
    scaled = (logits["test"].double().numpy() - bias) * found["scale"] + bias
    after = scores(scaled, digits.test.labels)
    assert (found["ece"], found["accuracy"]) == pytest.approx((after["ece"], after["accuracy"]), **CLOSE)
    assert len(found) == 4


def test_logits(context, logits, digits):
    values, labels = logits["test"].double().numpy(), digits.test.labels.numpy()
    others = np.where(np.eye(10, dtype=bool)[labels], -np.inf, values).max(1)
    found = row(context, "logits")
    assert found == pytest.approx(
        {
            "norm": np.sqrt(np.square(values).sum(1)).mean(),
            "largest": values.max(1).mean(),
            "margin": (values[np.arange(len(labels)), labels] - others).mean(),
        },
        rel=1e-6,
    )


def test_the_sample_is_stratified_and_always_the_same(context, digits):
    count = 60
    sample = context.some(count)
    assert len(sample.labels) == count
    assert sample.labels.bincount(minlength=10).min() >= count // 10 - 1
    assert torch.equal(study_context_indices(context, count), sample.indices)
    place = {int(index): number for number, index in enumerate(digits.test.indices)}
    rows = [place[int(index)] for index in sample.indices]
    assert rows == sorted(rows)
    assert torch.equal(sample.images, pixels(digits.test)[rows])
    assert torch.equal(sample.labels, digits.test.labels[rows])
    assert len(context.some(None).labels) == len(digits.test)


def study_context_indices(context, count):
    """Where the images of a subset stand in the data set, asked anew."""
    return context.indices[context.rows(count)]


def test_temperature_without_a_calibration_split(run, digits, logits):
    """Each half of the test images is divided by the temperature of the other; what needs the split says so."""
    from dataclasses import replace

    from surefoot.calibration.temperature import cross_fit_temperature
    from surefoot.data.subsets import taken

    none = taken(digits.train, torch.empty(0, dtype=torch.long))
    context = study_context(run, replace(digits, calibration=none, validation=none), calibrate_on="cross-fit")
    values = row(context, "temperature")
    crossed = cross_fit_temperature(context.clean, context.seed)
    after = scores(logits["test"].double() / crossed.temperatures[:, None], digits.test.labels)
    assert {name: values[name] for name in SCORES} == pytest.approx(after, **CLOSE)
    assert values["temperature"] == pytest.approx(np.mean([fit.temperature for fit in crossed.fits]))
    with pytest.raises(SurefootError, match=r"needs a calibration split \(data.calibration\), and there is none here"):
        row(context, "feature-scaling")
    with pytest.raises(SurefootError, match=r"needs a validation split \(data.validation\), and there is none here"):
        row(context, "validation")
