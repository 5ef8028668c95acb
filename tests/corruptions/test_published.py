from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from surefoot.corruptions import corrupt, corrupted, open_copies, write
from surefoot.corruptions.published import ArrayCopies, FolderCopies
from surefoot.data.dataset import TensorSplit
from surefoot.errors import NotFound, SurefootError


@pytest.fixture
def split():
    images = torch.randint(0, 256, (6, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return TensorSplit(images, torch.tensor([0, 1, 2, 0, 1, 2]), torch.arange(100, 106))


@pytest.fixture
def arrays(tmp_path):
    """CIFAR-C's layout: image n at severity s is all 10 * s + n."""
    images = np.array([10 * s + n for s in range(1, 6) for n in range(6)], dtype=np.uint8)
    np.save(tmp_path / "fog.npy", np.broadcast_to(images[:, None, None, None], (30, 8, 8, 3)))
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2, 0, 1, 2] * 5))
    return tmp_path


@pytest.fixture
def tree(tmp_path):
    """ImageNet-C's layout, with two images for each of three classes."""
    for severity in range(1, 6):
        for number, label in enumerate(("n01", "n02", "n03")):
            folder = tmp_path / "fog" / str(severity) / label
            folder.mkdir(parents=True)
            for image in range(2):
                Image.new("RGB", (8, 8), (severity, number, image)).save(folder / f"{image}.JPEG", quality=100)
    return tmp_path


def test_arrays_are_read_by_severity(arrays, split):
    found = corrupted(split, "fog", 3, copies=open_copies(arrays))
    batch = next(found.batches(10))
    assert (batch.images[:, 0, 0, 0] * 255).round().tolist() == [30, 31, 32, 33, 34, 35]
    assert batch.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert found.origin == f"read from {arrays}"


def test_what_is_not_on_disk_is_generated(arrays, split):
    copies = open_copies(arrays)
    assert copies.names == ["fog"]
    for name, severity in (("contrast", 3), ("fog", 2.5)):
        found = corrupted(split, name, severity, seed=4, copies=copies)
        expected = corrupt(split.images, name, severity, seed=4, indices=split.indices)
        assert torch.equal((next(found.batches(6)).images * 255).round().byte(), expected)
        assert found.origin == "generated with seed 4"
    assert corrupted(split, "fog", 3).origin == "generated with seed 0"


def test_trees_are_read_by_severity(tree, split):
    split = replace(split, labels=torch.tensor([0, 0, 1, 1, 2, 2]))
    found = corrupted(split, "fog", 5, copies=open_copies(tree))
    batches = list(found.batches(4))
    assert torch.cat([batch.labels for batch in batches]).tolist() == [0, 0, 1, 1, 2, 2]
    pixels = torch.cat([batch.images for batch in batches])[:, :, 0, 0] * 255
    expected = torch.tensor([[5, label, image] for label in range(3) for image in range(2)])
    assert (pixels - expected).abs().max() <= 3
    assert found.origin == f"read from {tree}"
    renumbered = open_copies(tree, class_names=("n03", "n02", "n01")).split("fog", 1)
    assert next(renumbered.batches(6)).labels.tolist() == [0, 0, 1, 1, 2, 2]


def test_our_own_copies_come_in_the_order_of_the_split(split, tmp_path):
    """Folders are sorted by class; the names of the files say which image each is."""
    data = SimpleNamespace(class_names=("a", "b", "c"), image_size=(8, 8), channels=3, source={}, split=lambda _: split)
    for layout in ("arrays", "folders"):
        write(data, tmp_path / layout, names=["fog"], layout=layout, progress=False)
        found = corrupted(split, "fog", 2, copies=open_copies(tmp_path / layout))
        generated = corrupted(split, "fog", 2)
        for one, two in zip(found.batches(4), generated.batches(4), strict=True):
            assert torch.equal((one.images * 255).round(), (two.images * 255).round())
            assert torch.equal(one.labels, two.labels)
            assert torch.equal(one.indices, two.indices)


def test_published_trees_are_matched_by_the_names_of_the_files(tree, split):
    """Here the split has the images of each class the other way round."""
    paths = [Path(f"val/{label}/{image}.JPEG") for image in (1, 0) for label in ("n01", "n02", "n03")]
    split = replace(split, indices=torch.arange(6), files=paths)
    batch = next(corrupted(split, "fog", 5, copies=open_copies(tree)).batches(6))
    assert batch.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert batch.indices.tolist() == [0, 1, 2, 3, 4, 5]
    expected = torch.tensor([[5, label, image] for image in (1, 0) for label in range(3)])
    assert (batch.images[:, :, 0, 0] * 255 - expected).abs().max() <= 3


def test_copies_that_cannot_be_told_apart_are_refused(arrays, tree, split):
    with pytest.raises(SurefootError, match="does not say which copy is of which image"):
        corrupted(split, "fog", 1, copies=FolderCopies(tree))
    other = replace(split, labels=split.labels.flip(0))
    with pytest.raises(SurefootError, match="labels in another order"):
        corrupted(other, "fog", 1, copies=ArrayCopies(arrays))
    larger = replace(split, images=split.images.repeat(1, 1, 2, 2))
    with pytest.raises(SurefootError, match="holds images of 8 x 8 px, and the split's are 16 x 16 px"):
        corrupted(larger, "fog", 1, copies=ArrayCopies(arrays))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda f: np.save(f / "fog.npy", np.zeros((31, 8, 8, 3), np.uint8)), "must be uint8, five times count"),
        (lambda f: np.save(f / "fog.npy", np.zeros((30, 8, 8, 3))), "must be uint8"),
        (lambda f: np.save(f / "labels.npy", np.zeros(7)), "must hold 6 or 30 labels, got 7"),
        (lambda f: np.save(f / "labels.npy", np.zeros(6)), "has other labels than the split"),
        (lambda f: np.save(f / "fog.npy", np.zeros((25, 8, 8, 3), np.uint8)), "got 30"),
        (lambda f: (f / "fog.npy").write_bytes(b"half"), "is not a whole .npy file"),
    ],
)
def test_wrong_arrays(arrays, split, wrong, message):
    wrong(arrays)
    with pytest.raises(SurefootError, match=message):
        corrupted(split, "fog", 1, copies=open_copies(arrays))


def test_other_folders_are_refused(arrays, split, tmp_path):
    with pytest.raises(NotFound, match="No folder of corrupted copies"):
        open_copies(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SurefootError, match="holds neither"):
        open_copies(tmp_path / "empty")
    fewer = TensorSplit(split.images[:4], split.labels[:4], split.indices[:4])
    with pytest.raises(SurefootError, match="holds 6 images, and the split has 4"):
        corrupted(fewer, "fog", 1, copies=open_copies(arrays))
    with pytest.raises(SurefootError, match="Unknown corruption in .* 'fogg'. Did you mean 'fog'"):
        open_copies(arrays).split("fogg", 1)
    with pytest.raises(SurefootError, match="severity must be 1, 2, 3, 4 or 5"):
        open_copies(arrays).split("fog", 6)
