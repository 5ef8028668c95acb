import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from surefoot.calibration.bootstrap import (
    DRAWS,
    copies,
    drawn_copies,
    empty_draws,
    estimate,
    mean_estimate,
    resampled_sums,
    resamples,
    shifted_estimate,
    states,
)
from surefoot.errors import SurefootError
from surefoot.keys import derive


def all_copies(images, seed=0, draws=DRAWS):
    return np.concatenate(list(drawn_copies(images, seed, draws)))


def splitmix(number):
    """The published finaliser, in Python's whole numbers."""
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) % 2**64
    return number ^ (number >> 31)


@pytest.mark.parametrize("image", [0, 1, 12345, 2**63 - 1, -1])
def test_copies_are_the_hash_of_seed_draw_and_image(image):
    golden, found = 0x9E3779B97F4A7C15, copies(states([image], 7), 0, 9)[0]
    state = splitmix((image * golden + derive(7, "bootstrap")) % 2**64)
    for draw in range(9):
        piece = (splitmix((state + (draw // 4 + 1) * golden) % 2**64) >> (16 * (draw % 4))) % 2**16
        share, number, below = piece / 2**16, 0, math.exp(-1)
        while share >= round(below * 2**16) / 2**16:
            number += 1
            below += math.exp(-1) / math.factorial(number)
        assert found[draw] == number


def test_copies_follow_the_law_of_poisson():
    found = all_copies(20_000, draws=200)
    size = found.size
    assert found.mean() == pytest.approx(1, abs=4 / size**0.5)
    assert found.var() == pytest.approx(1, abs=4 * 3**0.5 / size**0.5)  # the variance of (x - 1)^2 is 3
    for number in range(7):
        chance = math.exp(-1) / math.factorial(number)
        assert (found == number).mean() == pytest.approx(chance, abs=4 * (chance / size) ** 0.5 + 2**-16)


def test_draws_and_images_are_independent():
    """Correlations between draws, also those of one hash, and between images are those of noise."""
    found = all_copies(4000, draws=64)
    between_draws = np.corrcoef(found)[np.triu_indices(64, 1)]
    between_images = np.corrcoef(all_copies(64, draws=4000).T)[np.triu_indices(64, 1)]
    for correlations in (between_draws, between_images):
        assert np.abs(correlations).max() < 4.5 / 4000**0.5
        assert correlations.std() == pytest.approx(1 / 4000**0.5, rel=0.1)
    totals = all_copies(500, draws=4000).sum(1)
    assert totals.var() == pytest.approx(500, rel=0.1)


def test_weights_sum_to_the_number_of_images():
    for weights in resamples(300, 1, 50):
        assert weights.shape[1] == 300
        assert weights.sum(1) == pytest.approx(300)


def test_a_subset_has_the_weights_that_it_has_in_the_whole_set():
    ids = np.random.default_rng(0).integers(0, 2**62, 400)
    chosen = np.random.default_rng(1).permutation(400)[:150]
    whole, part = (np.concatenate(list(resamples(given, 5, 60))) for given in (ids, ids[chosen]))
    assert np.array_equal(all_copies(ids, 5, 60)[:, chosen], all_copies(ids[chosen], 5, 60))
    assert part == pytest.approx(whole[:, chosen] * 150 / whole[:, chosen].sum(1, keepdims=True))


def test_the_chunk_and_the_number_of_draws_do_not_matter(monkeypatch):
    expected = all_copies(100, 3, 50)
    monkeypatch.setattr("surefoot.calibration.bootstrap.CHUNK", 1200)
    assert [len(part) for part in drawn_copies(100, 3, 50)] == [12, 12, 12, 12, 2]
    assert np.array_equal(all_copies(100, 3, 50), expected)
    assert np.array_equal(all_copies(100, 3, 7), expected[:7])


def test_another_seed_gives_other_weights():
    one, two = all_copies(1000, 0, 40), all_copies(1000, 1, 40)
    assert np.array_equal(one, all_copies(np.arange(1000), 0, 40))
    assert abs(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 4 / 40_000**0.5


def test_a_draw_of_no_image_has_every_image_once():
    """One image: about e^-1 of the draws take nothing."""
    raw = copies(states(1, 0), 0, 400)[0]
    assert 110 < (raw == 0).sum() < 190
    assert np.array_equal(empty_draws(states(1, 0), 400), raw == 0)
    assert np.array_equal(all_copies(1, 0, 400)[:, 0], np.where(raw == 0, 1, raw))
    assert np.array_equal(np.concatenate(list(resamples(1, 0, 400))), np.ones((400, 1)))


def test_two_subsets_are_paired_by_the_images_they_share():
    """The same value of the shared images moves both means alike, though the subsets differ in size and order."""
    values, ids = np.random.default_rng(0).standard_normal(900), np.arange(900)
    first, second = ids[:800], ids[100:][::-1]
    means = [resampled_sums(values[own, None], 2, 2000, own)[:, 0] / len(own) for own in (first, second)]
    centred = [np.where(np.isin(ids, own), values - values[own].mean(), 0) for own in (first, second)]
    expected = centred[0] @ centred[1] / np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum())
    assert np.corrcoef(*means)[0, 1] == pytest.approx(expected, abs=0.02)
    unpaired = resampled_sums(values[second, None], 3, 2000, second)[:, 0] / len(second)
    assert abs(np.corrcoef(means[0], unpaired)[0, 1]) < 0.1


def test_sums_are_those_of_the_weights():
    values, ids = np.random.default_rng(0).standard_normal((50, 3)), np.arange(50) * 11
    expected = np.concatenate([weights @ values for weights in resamples(ids, 4, 30)])
    assert resampled_sums(values, 4, 30, ids) == pytest.approx(expected)
    assert resampled_sums(torch.from_numpy(values), 4, 30, torch.from_numpy(ids)) == pytest.approx(expected)
    assert resampled_sums(values, 4, 0).shape == (0, 3)


def test_the_interval_of_a_mean_is_as_wide_as_its_standard_error():
    values = np.random.default_rng(0).standard_normal(3000)
    found = mean_estimate(values, 0, 4000)
    assert found == values.mean()
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 3000**0.5, rel=0.05)
    assert mean_estimate(values, 0, ids=np.arange(3000) + 1).low != mean_estimate(values, 0).low


def test_samples_without_a_number_give_no_interval():
    for interval in (estimate, shifted_estimate):
        for samples in ([], [math.nan] * 3):
            found = interval(0.5, samples)
            assert found == 0.5
            assert math.isnan(found.low)


@pytest.mark.parametrize("ids", [[0.5, 1.0], [[1], [2]]])
def test_ids_are_whole_numbers(ids):
    with pytest.raises(SurefootError, match="ids must be one whole number for each image"):
        next(resamples(ids, 0))


def test_scores_with_torch_out_of_reach():
    """Numbers of a confidence of 0.8, three of four right: by hand."""
    code = """
import sys
sys.modules["torch"] = None
import numpy as np
from surefoot.calibration import ReliabilityBins
from surefoot.calibration.per_image import PerImage
from surefoot.calibration.scoring import NAMES, NOT_IN_COLUMNS, estimates, interval_of, samples_of_many
columns = PerImage.from_columns([0.8] * 4, [1, 1, 1, 0], [0.2, 0.2, 0.2, 1.6], [0.08] * 4, [0, 1, 1, 0], [5, 6, 7, 9], 15)
names = [name for name in NAMES if name not in NOT_IN_COLUMNS]
found = estimates(None, names, 15, per_image=columns)
assert np.allclose([found[name] for name in ("accuracy", "ece", "nll", "brier")], [0.75, 0.05, 0.55, 0.08])
(points, draws), = samples_of_many([columns], ["ece"], 15, 1000, 0)
assert interval_of("ece", points["ece"], draws, columns).high == found["ece"].high
assert abs(ReliabilityBins.of([0.8], [True], 15).ece - 0.2) < 1e-9
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
