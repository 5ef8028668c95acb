import numpy as np
import pytest
import torch

import surefoot as sf
from surefoot.errors import SurefootError


def save(path, **arrays):
    np.savez(path, **arrays)
    return str(path)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (60, 20, 24, 3), dtype=np.uint8)


@pytest.mark.parametrize(("channels", "expected"), [(3, 3), (1, 1), (None, 1)])
def test_shapes(tmp_path, images, channels, expected):
    pixels = images[..., 0] if channels is None else images[..., :channels]
    data = sf.load_data(save(tmp_path / "x.npz", images=pixels, labels=np.arange(60) % 4))
    assert (data.channels, data.image_size, data.num_classes) == (expected, (20, 24), 4)
    first = data.test.indices[0]
    assert np.array_equal(data.test.images[0, 0].numpy(), images[first, ..., 0])
    model = sf.load_model("tiny-resnet", data=data, seed=0)
    assert model(next(data.test.batches(2)).images).shape == (2, 4)


def test_class_names_and_class_map(tmp_path, images):
    path = save(tmp_path / "x.npz", images=images, labels=np.arange(60) % 2, class_names=np.array(["no", "yes"]))
    assert sf.load_data(path).class_names == ("no", "yes")
    (tmp_path / "m.txt").write_text("yes\nperhaps\nno\n")
    data = sf.load_data(path, class_map=str(tmp_path / "m.txt"))
    assert data.class_names == ("yes", "perhaps", "no")
    assert torch.equal(data.test.labels, 2 * (1 - data.test.indices % 2))  # "no", the file's class 0, is now class 2
    (tmp_path / "n.txt").write_text("zero\none\ntwo\n")
    with pytest.raises(SurefootError, match="Unknown class .it is not in the class map. 'no'"):
        sf.load_data(path, class_map=str(tmp_path / "n.txt"))
    nameless = save(tmp_path / "y.npz", images=images, labels=np.arange(60, dtype=np.uint16) % 2)
    data = sf.load_data(nameless, class_map=str(tmp_path / "n.txt"))
    assert data.class_names == ("zero", "one", "two")
    assert torch.equal(data.test.labels, data.test.indices % 2)


def test_labels_of_its_own(tmp_path, images):
    path = save(tmp_path / "x.npz", images=images, labels=np.arange(60) % 2)
    for name in (path, "hfds/x", "wds/x"):
        with pytest.raises(SurefootError, match=f"labels are for a flat folder of images, and '{name}' has its own"):
            sf.load_data(name, labels="labels.csv")


def test_resized(tmp_path, images):
    data = sf.load_data(save(tmp_path / "x.npz", images=images, labels=np.arange(60) % 2), image_size=32)
    assert data.test.images.shape[1:] == (3, 32, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("labels"), "must hold 'images' and 'labels', got images"),
        (lambda a: a.update(images=a["images"].astype(float)), "images must be uint8, got 'float64'"),
        (lambda a: a.update(images=a["images"][0, 0]), "images must be count x height x width"),
        (lambda a: a.update(images=np.zeros((60, 3, 20, 24), np.uint8)), "with 1 or 3 channels at the end"),
        (lambda a: a.update(labels=a["labels"][:5]), "labels must be one for each of 60 images"),
        (lambda a: a.update(labels=a["labels"] * 0.5), "labels must be whole numbers"),
        (lambda a: a.update(labels=a["labels"] - 1), "labels must be in 0 to 2, got -1 to 2"),
        (lambda a: a.update(class_names=np.array(["a"])), "labels must be in 0 to 0, got 0 to 3"),
        (lambda a: a.update(images=a["images"][:0], labels=a["labels"][:0]), "images must be at least one"),
        (lambda a: a.update(labels=np.array([{}] * 60, dtype=object)), "is not an .npz of plain arrays"),
    ],
)
def test_bad_arrays(tmp_path, images, change, message):
    arrays = {"images": images, "labels": np.arange(60) % 4}
    change(arrays)
    with pytest.raises(SurefootError, match=message):
        sf.load_data(save(tmp_path / "x.npz", **arrays))


def test_bad_files(tmp_path):
    with pytest.raises(SurefootError, match="No data file at"):
        sf.load_data(str(tmp_path / "x.npz"))
    np.savez(tmp_path / "y.npz", images=np.zeros((9, 8, 8), np.uint8), labels=np.zeros(9, int))
    np.save(tmp_path / "z.npy", np.zeros(3))
    half, single = (tmp_path / "y.npz").read_bytes()[:300], (tmp_path / "z.npy").read_bytes()
    for content in (b"not a zip", b"", half, single):
        (tmp_path / "x.npz").write_bytes(content)
        with pytest.raises(SurefootError, match="is not an .npz of plain arrays"):
            sf.load_data(str(tmp_path / "x.npz"))


def test_training_on_it(tmp_path, images):
    data = sf.load_data(save(tmp_path / "x.npz", images=images, labels=np.arange(60) % 4))
    model = sf.load_model("tiny-resnet", data=data, seed=0)
    done = sf.fit(model, sf.objectives.CrossEntropy(), data, epochs=1, batch_size=8, progress=False)
    assert torch.isfinite(done.model.head.weight).all()


@pytest.mark.parametrize("labels", [np.zeros((1, 1), dtype=int), np.zeros(1, dtype=int)])
def test_one_image(tmp_path, images, labels):
    data = sf.load_data(save(tmp_path / "x.npz", images=images[:1], labels=labels, class_names=np.array(["a", "b"])))
    assert sum(len(data.split(split)) for split in ("train", "calibration", "validation", "test")) == 1
