import pytest
import torch

from surefoot.data.collection import stratified_split

SHARES = {"train": 0.5, "calibration": 0.1, "validation": 0.1, "test": 0.3}


@pytest.mark.parametrize("seed", [0, 1])
def test_disjoint_complete_and_stratified(seed):
    labels = torch.randint(7, (1000,), generator=torch.Generator().manual_seed(seed))
    found = stratified_split(labels, SHARES, seed)
    together = torch.cat(list(found.values()))
    assert together.sort().values.equal(torch.arange(1000))
    for name, share in SHARES.items():
        counts = labels[found[name]].bincount(minlength=7)
        assert (counts - share * labels.bincount()).abs().max() <= 1


def test_same_seed_same_split_other_seed_another():
    labels = torch.arange(100) % 4
    first, again, other = (stratified_split(labels, SHARES, seed)["test"] for seed in (3, 3, 4))
    assert first.equal(again)
    assert not first.equal(other)
