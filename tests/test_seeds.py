import numpy as np
import pytest
import torch

from surefoot import seeds
from surefoot.seeds import derive, generator, global_seed


def test_seeds_differ_by_every_key_and_do_not_change_between_versions():
    seeds = {derive(0, 1, "order"), derive(1, 0, "order"), derive(0, 1, "noise"), derive(0, 1)}
    assert len(seeds) == 4
    assert derive(0, 1, "order") == 4365688119967752521
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_generators_repeat():
    a, b = (torch.rand(3, generator=generator(5, "x")) for _ in range(2))
    assert torch.equal(a, b)


def test_global_seed_gives_the_callers_state_back():
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    with global_seed(7, "x"):
        inside = torch.rand(2)
    assert torch.equal(torch.rand(2), expected)
    with global_seed(7, "x"):
        assert torch.equal(torch.rand(2), inside)
    torch.manual_seed(derive(7, "x"))
    assert torch.equal(torch.rand(2), inside)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.2, 1.0, 5.0])
def test_beta_and_dirichlet_have_their_moments(alpha):
    draws = seeds.beta(alpha, (200_000,), torch.empty(0, dtype=torch.float64), seeds.generator(0))
    assert draws.mean().item() == pytest.approx(0.5, abs=0.005)
    assert draws.var().item() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.02)
    shares = seeds.dirichlet(alpha, (100_000, 3), torch.empty(0, dtype=torch.float64), seeds.generator(1))
    assert torch.allclose(shares.sum(1), torch.ones(100_000, dtype=torch.float64))
    assert shares.var(0).tolist() == pytest.approx([2 / 9 / (3 * alpha + 1)] * 3, rel=0.03)


def test_a_number_is_a_number_of_any_type():
    assert derive(np.int64(3), "a") == derive(3, "a") == derive(torch.tensor(3), "a")
