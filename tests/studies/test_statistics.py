"""Means, deviations and paired intervals against numbers worked out by hand."""

import math

import pytest

from surefoot.studies.statistics import paired_difference, spread, t_quantile


def test_mean_and_deviation_by_hand():
    found = spread([1.0, 2.0, 4.0])
    assert found.mean == pytest.approx(7 / 3)
    assert found.deviation == pytest.approx(math.sqrt(((4 / 3) ** 2 + (1 / 3) ** 2 + (5 / 3) ** 2) / 2))
    assert math.isnan(spread([3.0]).deviation)


def test_t_quantiles_of_the_printed_tables():
    assert t_quantile(0.975, 1) == pytest.approx(12.706, abs=1e-3)
    assert t_quantile(0.975, 4) == pytest.approx(2.776, abs=1e-3)
    assert t_quantile(0.975, 1000) == pytest.approx(1.962, abs=1e-3)


def test_paired_difference_by_hand():
    """Differences 1, 2, 3: mean 2, deviation 1, half the interval 4.303 / sqrt(3)."""
    found = paired_difference({0: 11.0, 1: 22.0, 2: 33.0, 7: 0.0}, {2: 30.0, 0: 10.0, 1: 20.0, 9: 5.0})
    assert (found.mean, found.count) == (2.0, 3)
    assert found.high - found.mean == pytest.approx(4.302653 / math.sqrt(3), abs=1e-5)
    assert found.mean - found.low == pytest.approx(found.high - found.mean)
    assert found.within_noise  # 2.48 on either side of 2
    assert not paired_difference({0: 2.0, 1: 2.1}, {0: 1.0, 1: 1.1}).within_noise


def test_pairing_removes_what_seeds_share():
    """Seeds differ by 10, methods by 1: paired, the difference is clear; the deviations alone would hide it."""
    base = {0: 10.0, 1: 20.0, 2: 30.0}
    found = paired_difference({seed: value + 1 + 0.01 * seed for seed, value in base.items()}, base)
    assert not found.within_noise
    assert spread(list(base.values())).deviation == 10


def test_one_seed_says_nothing_about_noise():
    found = paired_difference({0: 2.0}, {0: 1.0})
    assert (found.mean, found.low, found.high, found.within_noise) == (1.0, -math.inf, math.inf, None)
    assert paired_difference({0: 1.0}, {1: 1.0}) is None
