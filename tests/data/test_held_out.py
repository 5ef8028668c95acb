"""How much of the training images is held out: the papers' 50,000 can be trained on, and a fraction is of all of them."""

import numpy as np
import pytest
import torch

import surefoot as sf
from surefoot.data.collection import assign_splits, publisher_splits
from surefoot.errors import SurefootError

SPLITS = ("train", "calibration", "validation", "test")


def sizes(data):
    return [len(data.split(name)) for name in SPLITS]


def test_nothing_held_out_trains_on_every_image(class_folders):
    """90 training images; at the default 9 go to each split."""
    assert sizes(sf.load_data(str(class_folders))) == [72, 9, 9, 30]
    data = sf.load_data(str(class_folders), calibration=0, validation=0)
    assert sizes(data) == [90, 0, 0, 30]
    assert sizes(sf.load_data(**data.source)) == [90, 0, 0, 30]


def test_the_old_shares_give_the_old_images(class_folders):
    plain, said = (sf.load_data(str(class_folders), **given) for given in ({}, {"calibration": 0.1, "validation": 0.1}))
    for name in SPLITS:
        assert plain.split(name).indices.equal(said.split(name).indices), name


@pytest.mark.parametrize(("shares", "expected"), [((0.2, 0), [72, 18, 0, 30]), ((0, None), [81, 0, 9, 30])])
def test_one_share_alone(class_folders, shares, expected):
    data = sf.load_data(str(class_folders), calibration=shares[0], validation=shares[1])
    assert sizes(data) == expected
    assert data.train.labels.bincount().tolist() == [expected[0] // 3] * 3


def test_a_fraction_is_of_the_full_training_set(class_folders):
    """A half of 90 is 45, with whatever is held out; without shares it is a half of what is left, as it was."""
    assert len(sf.load_data(str(class_folders), fraction=0.5).train) == 36
    for held_out in ({"calibration": 0, "validation": 0}, {"calibration": 0.1, "validation": 0.1}):
        half = sf.load_data(str(class_folders), fraction=0.5, **held_out)
        assert len(half.train) == pytest.approx(45, abs=1)
        assert half.calibration.indices.equal(sf.load_data(str(class_folders), **held_out).calibration.indices)
    with pytest.raises(SurefootError, match=r"fraction must be 1, or at most the 0.8 that is left to train on, got 0.9"):
        sf.load_data(str(class_folders), fraction=0.9, calibration=0.1)


def test_cifar_by_its_numbers():
    """50,000 images of ten classes: 5,000 at a tenth, exactly as many of every class, and the test split is not touched."""
    labels = torch.arange(60_000) % 10
    given = {"train": torch.arange(50_000), "test": torch.arange(50_000, 60_000)}
    everything = assign_splits(labels, given, 0, {"calibration": 0, "validation": 0})
    assert everything["train"].equal(torch.arange(50_000))
    assert everything["test"].equal(given["test"])
    fewer = assign_splits(labels, given, 0, {"calibration": 0.02, "validation": 0})
    assert labels[fewer["calibration"]].bincount().tolist() == [100] * 10


def test_a_split_of_the_publishers_is_kept(tmp_path, write_images):
    """As in Flowers-102: its validation images stay, and calibration is taken from training."""
    for split, count in (("train", 20), ("val", 8), ("test", 6)):
        for number, name in enumerate("ab"):
            write_images(tmp_path / "set" / split / name, count, start=100 * number)
    folder = str(tmp_path / "set")
    assert sizes(sf.load_data(folder)) == [36, 4, 16, 12]
    assert sizes(sf.load_data(folder, calibration=0, validation=0)) == [40, 0, 16, 12]
    assert len(sf.load_data(folder, calibration=0, fraction=0.5).train) == 20
    with pytest.raises(SurefootError, match="validation must be 0 or left out, since the data have their own validation split"):
        sf.load_data(folder, validation=0.2)


def test_data_without_division():
    assert [round(size / 1797, 1) for size in sizes(sf.load_data("digits"))] == [0.5, 0.1, 0.1, 0.3]
    everything, plain = sf.load_data("digits", calibration=0, validation=0), sf.load_data("digits")
    assert sizes(everything)[1:3] == [0, 0]
    assert len(everything.train) + len(everything.test) == 1797
    assert len(everything.test) == pytest.approx(len(plain.test), abs=10)


@pytest.mark.parametrize("shares", [{"calibration": -0.1}, {"validation": 1}, {"calibration": 0.5, "validation": 0.5}])
def test_shares_that_cannot_be(class_folders, shares):
    with pytest.raises(SurefootError, match=r"(calibration|validation) must be (at least 0 and below 1|below 1), got"):
        sf.load_data(str(class_folders), **shares)


def test_no_training_images_to_take_from(tmp_path):
    images = np.zeros((6, 8, 8, 3), dtype=np.uint8)
    labels = torch.arange(6) % 2
    given = publisher_splits({"validation": torch.arange(len(images))})
    assert [len(each) for each in assign_splits(labels, given, 0, {}).values()] == [0, 0, 0, 6]
    with pytest.raises(SurefootError, match="calibration must be 0 or left out, since the data have no training images"):
        assign_splits(labels, given, 0, {"calibration": 0.1})
