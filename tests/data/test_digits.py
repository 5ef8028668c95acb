import numpy as np
import pytest
import torch

import surefoot as sf
from surefoot.data.arrays import digits_file
from surefoot.errors import SurefootError, UnknownName
from surefoot.seeds import generator


def test_sizes(digits):
    assert (digits.num_classes, digits.channels, digits.image_size) == (10, 3, (32, 32))
    sizes = {name: len(digits.split(name)) for name in ("train", "calibration", "validation", "test")}
    assert sum(sizes.values()) == 1797
    assert sizes["train"] == pytest.approx(0.5 * 1797, abs=5)
    assert sizes["test"] == pytest.approx(0.3 * 1797, abs=5)


def test_splits_share_no_image_and_hold_every_class(digits):
    indices = torch.cat([digits.split(n).indices for n in ("train", "calibration", "validation", "test")])
    assert indices.unique().numel() == 1797
    for name in ("train", "calibration", "validation", "test"):
        assert digits.split(name).labels.unique().numel() == 10


def test_pixels_are_the_scans(digits):
    from sklearn.datasets import load_digits

    found = load_digits()
    raw = torch.from_numpy(found.images)
    assert np.array_equal(np.loadtxt(digits_file(), delimiter=","), np.c_[found.data, found.target])
    assert digits.test.labels.equal(torch.from_numpy(found.target)[digits.test.indices])
    assert digits.class_names == tuple(map(str, found.target_names))
    shrunk = digits.test.images.float().view(-1, 3, 8, 4, 8, 4).mean((3, 5))[:, 0] / 255 * 16
    nearest = torch.cdist(shrunk.double().flatten(1), raw.flatten(1)).argmin(1)
    assert (nearest == digits.test.indices).double().mean() > 0.98
    assert digits.test.images.dtype == torch.uint8


def test_same_seed_same_split():
    assert sf.load_data("digits", seed=1).test.indices.equal(sf.load_data("digits", seed=1).test.indices)
    assert not sf.load_data("digits", seed=1).test.indices.equal(sf.load_data("digits", seed=2).test.indices)


def test_batches_cover_the_split_once(digits):
    split = digits.validation
    ordered = list(split.batches(50))
    assert torch.cat([batch.indices for batch in ordered]).equal(split.indices)
    assert all(batch.images.min() >= 0 and batch.images.max() <= 1 for batch in ordered)
    assert torch.equal((ordered[0].images * 255).round().byte(), split.images[:50])
    shuffled = torch.cat([batch.indices for batch in split.batches(50, shuffle=generator(0))])
    assert not shuffled.equal(split.indices)
    assert shuffled.sort().values.equal(split.indices.sort().values)
    assert [len(b) for b in split.batches(50, drop_last=True)] == [50] * (len(split) // 50)


def test_unknown_names():
    with pytest.raises(UnknownName, match="Did you mean 'digits'"):
        sf.load_data("digit")
    with pytest.raises(UnknownName, match="Did you mean 'test'"):
        sf.load_data("digits").split("tset")


def test_a_folder_to_read_them_from_is_refused(tmp_path):
    with pytest.raises(SurefootError, match="root is for data that are read from a folder, and 'digits' is embedded"):
        sf.load_data("digits", root=str(tmp_path))


def test_without_scikit_learn_it_is_said(monkeypatch):
    monkeypatch.setattr("surefoot.data.arrays.find_spec", lambda name: None)
    with pytest.raises(SurefootError, match="pip install scikit-learn"):
        sf.load_data("digits")
