import math

import numpy as np
import plain_conformal as plain
import pytest
import torch
from definitions import softmax
from hypothesis import given, settings
from hypothesis import strategies as st
from test_prediction_sets import drawn, one_thread

from surefoot.calibration import cross_fit_risk_threshold, fit_risk_threshold, fit_temperature
from surefoot.calibration.disjoint import parted
from surefoot.calibration.risk import Outcomes, least_answers, p_value, threshold_sequence
from surefoot.errors import SurefootError
from surefoot.types import Predictions

__all__ = ["one_thread"]


def easy(images, seed, wrong=0.0, start=0):
    """A model that is wrong in a share of all images, whatever its confidence."""
    random = np.random.default_rng(seed)
    logits = torch.zeros(images, 3)
    logits[:, 0] = torch.from_numpy(random.uniform(1, 6, images))
    labels = torch.from_numpy((random.random(images) < wrong).astype(np.int64))
    return Predictions.from_logits(logits, labels, indices=torch.arange(start, start + images))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 80), st.data(), st.floats(0.001, 0.6))
def test_p_values_are_exact_binomial_tails(answered, data, risk):
    mistakes = data.draw(st.integers(0, answered))
    assert float(p_value(mistakes, answered, risk)) == pytest.approx(plain.binomial_tail(mistakes, answered, risk), rel=1e-9)


def test_least_answers_by_hand():
    assert least_answers(0.01, 0.95) == 299  # 0.99^299 = 0.0495, 0.99^298 = 0.0500...
    assert least_answers(0.05, 0.95) == 59
    assert least_answers(0.5, 0.5) == 1
    for risk, confidence in ((0.02, 0.9), (0.1, 0.99), (0.5, 0.875)):
        least = least_answers(risk, confidence)
        assert (1 - risk) ** least <= 1 - confidence + 1e-12 < (1 - risk) ** (least - 1)


def test_counts_take_equal_confidences_together():
    given_ = Predictions.from_logits(torch.tensor([[2.0, 0], [0, 2.0], [0, 0], [5.0, 0]]), torch.tensor([0, 0, 0, 1]))
    top, middle = float(torch.tensor([5.0, 0]).double().softmax(0)[0]), float(torch.tensor([2.0, 0]).double().softmax(0)[0])
    answered, mistakes = Outcomes.of(given_).above([1.0, top, middle, 0.5, 0.0])
    assert answered.tolist() == [0, 1, 3, 4, 4]
    assert mistakes.tolist() == [0, 1, 2, 2, 2]


@pytest.mark.parametrize(("risk", "confidence"), [(0.01, 0.95), (0.1, 0.95), (0.15, 0.9), (0.2, 0.99)])
def test_threshold_against_the_paper(risk, confidence):
    given_ = drawn(900, 3, 4, sharpness=2.0)
    first, rest = parted(given_, 0.2, 7)
    sequence = threshold_sequence(Outcomes.of(first), len(rest), risk)
    assert (np.diff(sequence) < 0).all()
    found = fit_risk_threshold(given_, risk, confidence, seed=7)
    assert found.threshold == plain.fixed_sequence(rest.logits, rest.labels.tolist(), sequence, risk, 1 - confidence)
    assert (found.threshold is None) == (risk == 0.01)
    if found.threshold is None:
        return
    passed = softmax(rest.logits).max(1) >= found.threshold
    assert found.answered == passed.sum()
    assert found.mistakes == (passed & ~rest.correct.numpy()).sum()
    assert plain.binomial_tail(found.mistakes, found.answered, risk) <= 1 - confidence
    assert torch.equal(found.answers(rest.logits), torch.from_numpy(passed))
    assert (found.images, found.tuned_on) == (720, 180)


def test_no_image_serves_twice():
    given_ = drawn(600, 3, 5)
    first, rest = parted(given_, 0.2, 1)
    found, apart = fit_risk_threshold(given_, 0.1, seed=1), fit_risk_threshold(rest, 0.1, tuning=first, seed=1)
    assert (found.threshold, found.answered) == (apart.threshold, apart.answered)
    swapped = Predictions.from_logits(rest.logits, rest.logits.argmin(1), indices=rest.indices)  # all wrong
    assert fit_risk_threshold(swapped, 0.1, tuning=first, seed=1).threshold is None
    with pytest.raises(SurefootError, match="tuning must be of other images"):
        fit_risk_threshold(rest, 0.1, tuning=rest)
    assert found.fitted_on.overlap(given_) == 600


def test_nothing_can_be_promised():
    few = fit_risk_threshold(easy(300, 0), 0.01)
    assert few.threshold is None
    assert few.note == (
        "No threshold can be promised with so few images: an error rate of 1 % with probability 0.95 needs 299 answers without "
        "a mistake, and 240 images were there to test it."
    )
    assert not few.answers(torch.randn(5, 3) * 50).any()
    poor = fit_risk_threshold(easy(1000, 0, wrong=0.3), 0.01)
    assert poor.threshold is None
    assert poor.note.startswith(
        f"No threshold can be promised: {poor.mistakes} of the {poor.answered} surest answers are wrong"
    )
    assert poor.mistakes > 0


def test_limiting_cases():
    sure = fit_risk_threshold(easy(2000, 0), 0.01)  # never wrong: everything is answered that the sequence reaches
    assert sure.mistakes == 0
    assert sure.answered >= 0.99 * sure.images
    anything = fit_risk_threshold(easy(1000, 0, wrong=0.3), 0.5)
    assert anything.answered >= 0.98 * anything.images
    strict, loose = (fit_risk_threshold(drawn(4000, 3, 0), risk).threshold for risk in (0.05, 0.2))
    assert strict > loose
    bold, careful = (fit_risk_threshold(drawn(4000, 3, 0), 0.1, confidence).threshold for confidence in (0.5, 0.999))
    assert bold < careful


@pytest.mark.parametrize("draws", [400, pytest.param(1000, marks=pytest.mark.stress)])
def test_promised_risk_is_exceeded_in_at_most_delta_of_draws(draws, one_thread):
    """Many data sets of 240 images: temperature and sequence on a half, the threshold on the other half.

    Labels follow softmax(z), so after the right temperature the true error rate above a threshold is a mean of 1 - confidence.
    """
    risk, delta = 0.15, 0.1
    population = drawn(20_000, 3, 99)
    wrong_chance = 1 - (population.logits.double() / 1.7).softmax(1).amax(1)
    whole = drawn(draws * 240, 3, 12)
    exceeded = promised = 0
    for draw in range(draws):
        own = whole[slice(draw * 240, (draw + 1) * 240)]
        first, rest = parted(own, 0.5, draw)
        temperature = fit_temperature(first)
        found = fit_risk_threshold(
            temperature.calibrate(rest), risk, 1 - delta, tuning=temperature.calibrate(first, allow_leakage=True), seed=draw
        )
        if found.threshold is None:
            continue
        promised += 1
        answered = (population.logits / temperature.temperature).softmax(1).amax(1) >= found.threshold
        exceeded += float(wrong_chance[answered].mean()) > risk
    assert promised > 0.3 * draws  # the promise is made often enough to be tested
    assert exceeded / draws <= delta + 3 * math.sqrt(delta * (1 - delta) / draws)
    assert exceeded > 0  # and it is not empty


def test_at_the_edge_the_level_is_reached(one_thread):
    """Where the error rate is a little above the promise at every threshold, a promise is wrong, and made in at most delta."""
    made = sum(
        fit_risk_threshold(easy(300, seed, wrong=0.1001), 0.1, 0.9, seed=seed).threshold is not None for seed in range(1000)
    )
    assert 0.02 < made / 1000 <= 0.1 + 3 * math.sqrt(0.09 / 1000)


def test_cross_fitting():
    given_ = drawn(801, 3, 0)
    found = cross_fit_risk_threshold(given_, 0.1, seed=2)
    answers = found.answers(given_)
    for fold in (0, 1):
        mine = (found.folds == fold).nonzero().squeeze(1)
        assert found.fits[fold].fitted_on.overlap(given_[mine]) == 0
        assert torch.equal(answers[mine], found.fits[fold].answers(given_.logits[mine]))
    assert found.thresholds == tuple(fit.threshold for fit in found.fits)
    with pytest.raises(SurefootError, match="of the 801 images of the fit, got 800"):
        found.answers(given_[:800])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"risk": 0.0}, "risk must be between 0 and 1, got 0.0"),
        ({"risk": 1.0}, "risk must be between 0 and 1, got 1.0"),
        ({"risk": float("nan")}, "risk must be between 0 and 1, got nan"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1, got 1.0"),
        ({"tuning": 0.0}, "tuning must be a share between 0 and 1, got 0.0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(SurefootError, match=message):
        fit_risk_threshold(easy(50, 0), **options)


def test_bad_predictions():
    with pytest.raises(SurefootError, match="at least 2 classes"):
        fit_risk_threshold(Predictions(torch.randn(9, 1), torch.zeros(9, dtype=torch.long)))
    with pytest.raises(SurefootError, match="logits must be finite"):
        fit_risk_threshold(Predictions(torch.full((9, 2), float("nan")), torch.zeros(9, dtype=torch.long)))
    with pytest.raises(SurefootError, match="at least 2 images"):
        fit_risk_threshold(easy(1, 0))
    with pytest.raises(SurefootError, match="logits must be finite"):
        fit_risk_threshold(easy(50, 0)).answers(torch.full((2, 3), float("inf")))
