import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.calibration import Predictions, reliability, scores
from surefoot.calibration.bins import bin_of
from surefoot.errors import SurefootError


def plain_ece(probabilities, labels, bins):
    """ECE from its definition, one image at a time."""
    inside = [[] for _ in range(bins)]
    for row, label in zip(probabilities, labels, strict=True):
        confidence = float(max(row))
        for k in range(bins):
            if k / bins < confidence <= (k + 1) / bins or (k == 0 and confidence == 0):
                inside[k].append((confidence, int(np.argmax(row)) == label))
    total = 0.0
    for members in inside:
        if members:
            confidence = sum(c for c, _ in members) / len(members)
            accuracy = sum(r for _, r in members) / len(members)
            total += len(members) / len(labels) * abs(accuracy - confidence)
    return total


def random_predictions(count, classes, seed, sharpness=3.0):
    draws = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, classes, generator=draws, dtype=torch.float64) * sharpness
    return Predictions.from_logits(logits, torch.randint(classes, (count,), generator=draws))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.integers(2, 50), st.integers(1, 30), st.integers(0, 1000))
def test_ece_against_the_definition(count, classes, bins, seed):
    found = random_predictions(count, classes, seed)
    probabilities = found.log_probabilities.exp().numpy()
    assert reliability(found, bins).ece == pytest.approx(plain_ece(probabilities, found.labels.tolist(), bins), abs=1e-9)


def test_values_by_hand():
    probabilities = torch.tensor([[0.8, 0.2], [0.6, 0.4], [0.9, 0.1], [0.3, 0.7]], dtype=torch.float64)
    found = scores(Predictions.from_probabilities(probabilities, torch.tensor([0, 1, 0, 1])), bins=10)
    assert found.accuracy == 0.75
    assert found.ece == pytest.approx((0.2 + 0.6 + 0.1 + 0.3) / 4)
    assert found.signed_error == pytest.approx((-0.2 + 0.6 - 0.1 - 0.3) / 4)
    assert found.nll == pytest.approx(-np.log([0.8, 0.4, 0.9, 0.7]).mean())


def test_certain_and_impossible_fall_in_the_outer_bins():
    assert bin_of(torch.tensor([0.0, 1e-9, 0.1, 0.1000001, 1.0], dtype=torch.float64), 10).tolist() == [0, 0, 0, 1, 9]
    certain = Predictions.from_probabilities(torch.tensor([[1.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))
    table = reliability(certain, 15)
    assert table.counts.tolist() == [0] * 14 + [4]
    assert table.ece == pytest.approx(0.25)


def test_order_does_not_matter():
    found = random_predictions(500, 10, 0)
    turned = found[torch.randperm(500)]
    assert reliability(found).ece == pytest.approx(reliability(turned).ece, abs=1e-12)


def test_intervals_have_their_coverage():
    """A 95 % interval for the accuracy holds the truth in about 95 % of data sets."""
    hits = 0
    for seed in range(200):
        draws = torch.Generator().manual_seed(seed)
        right = torch.rand(200, generator=draws) < 0.8
        logits = torch.stack([right.double(), 1 - right.double()], 1)
        found = scores(Predictions.from_logits(logits, torch.zeros(200, dtype=torch.long)), intervals=300, seed=seed)
        hits += found.accuracy.low <= 0.8 <= found.accuracy.high
    assert 180 <= hits <= 198


def test_a_calibrated_model_is_inside_the_band_and_a_sharpened_one_is_not():
    inside = outside = 0
    for seed in range(60):
        draws = torch.Generator().manual_seed(seed)
        logits = torch.randn(400, 5, generator=draws, dtype=torch.float64) * 2
        labels = torch.multinomial(logits.softmax(1), 1, generator=draws).squeeze(1)
        true, sharp = (scores(Predictions.from_logits(z, labels), intervals=300, seed=seed) for z in (logits, logits * 3))
        inside += true.ece_if_calibrated[0] <= true.ece <= true.ece_if_calibrated[1]
        outside += sharp.ece > sharp.ece_if_calibrated[1]
        assert sharp.signed_error > true.signed_error
    assert inside >= 52
    assert outside == 60


def test_seeded():
    found = random_predictions(100, 3, 0)
    assert scores(found, seed=1) == scores(found, seed=1)
    assert scores(found, seed=1).ece.low != scores(found, seed=2).ece.low


def test_bad_input():
    with pytest.raises(SurefootError, match="bins must be at least 1, got 0"):
        scores(random_predictions(10, 3, 0), bins=0)
    with pytest.raises(SurefootError, match="of at least one image"):
        scores(random_predictions(1, 3, 0)[torch.tensor([], dtype=torch.long)])
