import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import surefoot as sf
from surefoot.corruptions import copies, corrupt, corrupted, frost_photographs, open_copies, write
from surefoot.data.dataset import TensorSplit
from surefoot.errors import SurefootError

NAMES = ["gaussian_noise", "contrast", "occlusion+gaussian_noise"]


@pytest.fixture(scope="module")
def data():
    return sf.load_data("digits", max_images=30)


def expected(data, name, severity, seed=0):
    return corrupt(data.test.images, name, severity, seed=seed, indices=data.test.indices)


def test_arrays_hold_what_corrupt_gives(data, tmp_path):
    folder = write(data, tmp_path / "out", names=NAMES, seed=3, progress=False)
    wanted = [*(f"{n}.npy" for n in NAMES), "copies.json", "labels.npy"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(wanted)
    count = len(data.test)
    for name in NAMES:
        found = np.load(folder / f"{name}.npy")
        assert found.shape == (5 * count, 32, 32, 3)
        assert found.dtype == np.uint8
        for severity in (1, 5):
            part = torch.from_numpy(found[(severity - 1) * count : severity * count]).permute(0, 3, 1, 2)
            assert torch.equal(part, expected(data, name, severity, 3))
    assert np.load(folder / "labels.npy").tolist() == data.test.labels.tolist()


def test_our_own_reader_reads_both_layouts(data, tmp_path):
    for layout in ("arrays", "folders"):
        found = open_copies(write(data, tmp_path / layout, names=["contrast"], layout=layout, progress=False), data.class_names)
        batch = next(corrupted(data.test, "contrast", 4, copies=found).batches(100))
        theirs, ours = ((batch.images * 255).round().byte(), batch.labels), (expected(data, "contrast", 4), data.test.labels)
        order = [images.flatten(1).long().sum(1).argsort() for images, _ in (theirs, ours)]
        assert torch.equal(theirs[0][order[0]].flatten(1).long().sum(1), ours[0][order[1]].flatten(1).long().sum(1))
        assert torch.equal(theirs[1].sort().values, ours[1].sort().values)


def test_folders_are_read_by_torchvision(data, tmp_path):
    from torchvision.datasets import ImageFolder

    folder = write(data, tmp_path / "out", names=["contrast"], layout="folders", progress=False)
    found = ImageFolder(folder / "contrast" / "2")
    assert len(found) == len(data.test)
    by_index = dict(zip(data.test.indices.tolist(), expected(data, "contrast", 2), strict=True))
    labels = dict(zip(data.test.indices.tolist(), data.test.labels.tolist(), strict=True))
    for (path, label), (image, _) in zip(found.samples, found, strict=True):
        index = int(path.rpartition("/")[2].removesuffix(".png"))
        assert np.array_equal(np.asarray(image), by_index[index].permute(1, 2, 0).numpy())
        assert label == labels[index]


@pytest.mark.parametrize("layout", ["arrays", "folders"])
def test_a_stopped_run_goes_on_and_leaves_the_same(data, tmp_path, layout, monkeypatch):
    def files(folder):
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    whole = write(data, tmp_path / "whole", names=NAMES, layout=layout, progress=False)
    real, calls = copies.corrupted_levels, []

    def stops(*arguments):
        calls.append(arguments[1])
        if len(calls) == 8:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(copies, "corrupted_levels", stops)
    with pytest.raises(KeyboardInterrupt):
        write(data, tmp_path / "part", names=NAMES, layout=layout, progress=False)
    calls.clear()
    monkeypatch.setattr(copies, "corrupted_levels", lambda *a: calls.append(a[1]) or real(*a))
    write(data, tmp_path / "part", names=NAMES, layout=layout, progress=False)
    assert set(calls) == {"contrast", "occlusion+gaussian_noise"}
    assert files(tmp_path / "part") == files(whole)
    assert not list((tmp_path / "part").rglob("*.part"))


@pytest.mark.parametrize("led", ["contrast", ".lock"])
def test_copies_are_not_written_through_links(data, tmp_path, led):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    write(data, tmp_path / "out", names=["brightness"], layout="folders", progress=False)
    (tmp_path / "out" / led).unlink(missing_ok=True)
    (tmp_path / "out" / led).symlink_to(tmp_path / "elsewhere")
    (tmp_path / "out" / "brightness" / ".1.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SurefootError, match=f"out/{led}' is a link"):
        write(data, tmp_path / "out", names=["contrast"], layout="folders", progress=False)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_other_copies_are_never_mixed(data, tmp_path):
    write(data, tmp_path / "out", names=["contrast"], progress=False)
    with pytest.raises(SurefootError, match="holds other copies: seed is 0 there and 1 here"):
        write(data, tmp_path / "out", names=["contrast"], seed=1, progress=False)
    with pytest.raises(SurefootError, match="holds other copies: layout is 'arrays' there and 'folders' here"):
        write(data, tmp_path / "out", names=["contrast"], layout="folders", progress=False)
    (tmp_path / "photos").mkdir()
    with frost_photographs(tmp_path / "photos"), pytest.raises(SurefootError, match="frost is None there"):
        write(data, tmp_path / "out", names=["contrast"], progress=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(SurefootError, match="must be a new or empty folder"):
        write(data, tmp_path / "mine", progress=False)
    write(data, tmp_path / "out", names=["brightness"], progress=False)
    assert (tmp_path / "out" / "brightness.npy").is_file()
    assert json.loads((tmp_path / "out" / "copies.json").read_text())["scale"] == "32"


def test_bad_arguments(data, tmp_path):
    with pytest.raises(SurefootError, match="Unknown layout 'array'. Did you mean 'arrays'"):
        write(data, tmp_path / "out", layout="array")
    with pytest.raises(SurefootError, match="Unknown corruption 'fogg'. Did you mean 'fog'"):
        write(data, tmp_path / "out", names=["contrast+fogg"])
    assert not (tmp_path / "out").exists()


def test_one_channel(tmp_path, data):
    grey = TensorSplit(data.test.images[:, :1], data.test.labels, data.test.indices)
    one = replace(data, test=grey, channels=1)
    for layout in ("arrays", "folders"):
        write(one, tmp_path / layout, names=["frost"], layout=layout, progress=False)
    assert np.load(tmp_path / "arrays" / "frost.npy").shape[3] == 1


def test_data_without_a_name_are_told_apart_by_what_they_hold(data, tmp_path):
    one = replace(data, source={})
    other = replace(one, test=replace(data.test, labels=data.test.labels.flip(0)))
    write(one, tmp_path / "out", names=["contrast"], progress=False)
    with pytest.raises(SurefootError, match="holds other copies: content is"):
        write(other, tmp_path / "out", names=["brightness"], progress=False)


def test_two_processes_do_not_write_to_one_folder(data, tmp_path):
    with copies.claimed(tmp_path / "out", {}), pytest.raises(SurefootError, match="Another process is writing"):
        write(data, tmp_path / "out", names=["contrast"], progress=False)


@pytest.mark.parametrize("names", [("crane", "crane"), ("a/b", "c"), ("..", "c")])
def test_class_names_must_be_folders(data, tmp_path, names):
    with pytest.raises(SurefootError, match="class names must be"):
        write(replace(data, class_names=names), tmp_path / "out", layout="folders", progress=False)
    assert not (tmp_path / "out").exists()


def test_a_class_without_images_has_no_folder(tmp_path):
    """So that our own reader, and torchvision's, take the copies."""
    data = sf.load_data("digits", max_images=6)
    folder = write(data, tmp_path / "out", names=["contrast"], layout="folders", progress=False)
    found = open_copies(folder, data.class_names).split("contrast", 2)
    assert sorted(found.labels.tolist()) == sorted(data.test.labels.tolist())


def test_how_data_are_read_does_not_matter(tmp_path):
    options = {"max_images": 6, "memory_gib": 0.0}
    folder = write(sf.load_data("digits", workers=0, **options), tmp_path / "out", names=["contrast"], progress=False)
    write(sf.load_data("digits", workers=1, **options), folder, names=["contrast"], progress=False)
    with pytest.raises(SurefootError, match="holds other copies: (content|data seed) is"):
        write(sf.load_data("digits", seed=1, **options), folder, names=["contrast"], progress=False)


def test_labels_are_not_read_from_pictures(tmp_path, monkeypatch):
    data = sf.load_data("digits", max_images=6, memory_gib=0.0, workers=0)
    write(data, tmp_path / "out", names=["contrast"], progress=False)
    reads = []
    real = type(data.test).batches
    monkeypatch.setattr(type(data.test), "batches", lambda split, *a, **o: reads.append(1) or real(split, *a, **o))
    write(data, tmp_path / "out", names=["contrast"], progress=False)
    assert len(reads) == 1  # a few, to know the data by
