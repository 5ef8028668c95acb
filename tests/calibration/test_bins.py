from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_scoring import random_predictions

from surefoot.calibration import Predictions, ReliabilityBins, reliability
from surefoot.calibration.bins import adaptive_rms, bin_of
from surefoot.errors import SurefootError
from surefoot.intervals import wilson


def test_certain_and_impossible_fall_in_the_outer_bins():
    assert bin_of(torch.tensor([0.0, 1e-9, 0.1, 0.1000001, 1.0], dtype=torch.float64), 10).tolist() == [0, 0, 0, 1, 9]
    certain = Predictions.from_probabilities(torch.tensor([[1.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))
    table = reliability(certain, 15)
    assert table.counts.tolist() == [0] * 14 + [4]
    assert table.ece == pytest.approx(0.25)
    outer = ReliabilityBins.of(torch.tensor([0.0, 1.0]), torch.tensor([False, True]), 15)
    assert outer.counts.tolist() == [1] + [0] * 13 + [1]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 2000),
    st.integers(2, 30),
    st.integers(1, 40),
    st.integers(0, 1000),
    st.lists(st.integers(0, 2000), max_size=5),
)
def test_merging_any_split_in_any_order_gives_the_same_bins(count, classes, bins, seed, cuts):
    whole = random_predictions(count, classes, seed)
    confidences, correct = whole.confidences, whole.correct
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    edges = sorted({0, count, *(cut % count for cut in cuts)})
    parts = [ReliabilityBins.of(confidences[order[a:b]], correct[order[a:b]], bins) for a, b in pairwise(edges)]
    merged = parts[-1]
    for part in parts[:-1]:
        merged = part + merged
    expected = ReliabilityBins.of(confidences, correct, bins)
    for name in ("counts", "confidence_units", "correct", "variance_units"):
        assert np.array_equal(getattr(merged, name), getattr(expected, name))
    assert (merged.ece, merged.rms, merged.debiased_ece) == (expected.ece, expected.rms, expected.debiased_ece)


def test_sums_are_exact_to_twelve_digits():
    values = torch.rand(100_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    table = ReliabilityBins.of(values, values > 0.5, 1)
    assert float(table.confidences[0]) == pytest.approx(float(values.sum()), rel=1e-12)


def test_the_data_of_the_diagram():
    p = torch.tensor([[0.6, 0.4], [0.62, 0.38], [0.9, 0.1]], dtype=torch.float64)
    table = reliability(Predictions.from_probabilities(p, torch.tensor([0, 1, 0])), bins=5)
    assert table.edges.tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert table.counts.tolist() == [0, 0, 1, 1, 1]
    assert table.shares.tolist() == pytest.approx([0, 0, 1 / 3, 1 / 3, 1 / 3])
    assert table.mean_confidences[2:].tolist() == pytest.approx([0.6, 0.62, 0.9])
    assert table.accuracies[2:].tolist() == [1, 0, 1]
    assert table.intervals[2].tolist() == pytest.approx([wilson(1, 1)["low"], 1])
    assert np.isnan(table.intervals[0]).all()


def test_wilsons_interval():
    """Where |p - share| = z sqrt(p (1 - p) / n), Wilson's definition; and inside [0, 1], where rounding would leave it."""
    for right, count in ((1, 3), (7, 10), (95, 100)):
        found, share = wilson(right, count), right / count
        for end in (found["low"], found["high"]):
            assert abs(end - share) == pytest.approx(1.959964 * (end * (1 - end) / count) ** 0.5)
        assert found["low"] < share < found["high"]
    for count in range(1, 200):
        none, all_right = wilson(0, count), wilson(count, count)
        assert (none["low"], all_right["high"]) == (0, 1)
        assert none["high"] == pytest.approx(1 - all_right["low"])


def test_bins_of_different_numbers_do_not_merge():
    with pytest.raises(SurefootError, match="bins must be 5 to be merged"):
        _ = reliability(random_predictions(4, 3, 0), 5) + reliability(random_predictions(4, 3, 0), 6)


@pytest.mark.parametrize("count", [1, 30, 99, 100, 250, 1000])
def test_adaptive_rms_by_a_loop(count):
    """Bins of 100 in the order of confidence; the last one takes what is left over."""
    draw = np.random.default_rng(count)
    sure, right = draw.uniform(0.2, 1, count), draw.uniform(size=count) < 0.7
    pairs = sorted(zip(sure.tolist(), right.tolist(), strict=True), key=lambda pair: pair[0])
    bins = [pairs[start : start + 100] for start in range(0, count, 100)]
    if len(bins) > 1 and len(bins[-1]) < 100:
        bins[-2:] = [bins[-2] + bins[-1]]
    total = 0.0
    for own in bins:
        gap = sum(each for each, _ in own) / len(own) - sum(each for _, each in own) / len(own)
        total += len(own) / count * gap**2
    assert adaptive_rms(sure, right) == pytest.approx(total**0.5)


def test_the_floor_of_bins_of_100_images():
    """Perfectly calibrated predictions have gaps of sqrt(c (1 - c) / 100)."""
    draw = np.random.default_rng(0)
    sure = draw.uniform(0.1, 1, 400_000)
    floor = float(np.sqrt((sure * (1 - sure)).mean() / 100))
    assert adaptive_rms(sure, draw.uniform(size=len(sure)) < sure) == pytest.approx(floor, rel=0.03)
    assert adaptive_rms(np.ones(500), np.ones(500)) == 0
    with pytest.raises(SurefootError, match="images_per_bin must be at least 1, got 0"):
        adaptive_rms([0.5], [True], 0)
