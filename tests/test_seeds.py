import torch

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
