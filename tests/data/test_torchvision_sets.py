"""torchvision's sets, from files in their published layouts that the tests make themselves."""

import gzip
import pickle
import struct
import tarfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot.data.torchvision_sets import default_root
from surefoot.errors import SurefootError


def write_mnist(root, name="MNIST", counts=(60, 20)):
    folder = root / name / "raw"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for part, count in zip(("train", "t10k"), counts, strict=True):
        pixels = random.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        pixels[:, 0, 0] = np.arange(count) % 10
        labels = (np.arange(count) % 10).astype(np.uint8)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, 28, 28) + pixels.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels.tobytes())


@pytest.mark.parametrize(("name", "folder", "flip"), [("mnist", "MNIST", False), ("fashion-mnist", "FashionMNIST", True)])
def test_mnist(tmp_path, name, folder, flip):
    write_mnist(tmp_path, folder)
    data = sf.load_data(name, root=str(tmp_path))
    assert (data.num_classes, data.channels, data.image_size) == (10, 1, (28, 28))
    assert [len(data.split(s)) for s in ("train", "calibration", "validation", "test")] == [48, 6, 6, 20]
    assert torch.equal(data.test.images[:, 0, 0, 0].long(), data.test.labels)
    assert data.augmentation.flip is flip
    if name == "mnist":
        assert data.class_names[:2] == ("zero", "one")


def patch_checksums(monkeypatch, cls):
    monkeypatch.setattr(cls, "_check_integrity", lambda self: True)


def test_cifar10(tmp_path, monkeypatch):
    import torchvision

    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    names = [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]
    for number, name in enumerate(names):
        pixels = np.full((20, 3072), number, dtype=np.uint8)
        (folder / name).write_bytes(pickle.dumps({"data": pixels, "labels": [k % 10 for k in range(20)]}))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": [f"class {k}" for k in range(10)]}))
    patch_checksums(monkeypatch, torchvision.datasets.CIFAR10)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *_: True)
    data = sf.load_data("cifar10", root=str(tmp_path))
    assert data.test.images.unique().tolist() == [5]
    assert data.train.images.shape[1:] == (3, 32, 32)
    assert data.class_names[3] == "class 3"
    assert len(data.train) + len(data.calibration) + len(data.validation) == 100


def test_flowers102_has_files_and_its_own_validation_split(tmp_path, monkeypatch):
    """Images of different sizes: read and resized as the model wants."""
    import torchvision
    from scipy.io import savemat

    folder = tmp_path / "flowers-102"
    (folder / "jpg").mkdir(parents=True)
    for number in range(1, 31):
        Image.new("RGB", (60 + number, 80), (number, 0, 0)).save(folder / "jpg" / f"image_{number:05}.jpg", quality=100)
    savemat(folder / "imagelabels.mat", {"labels": np.arange(30) % 3 + 1})
    splits = {"trnid": np.arange(1, 16), "valid": np.arange(16, 21), "tstid": np.arange(21, 31)}
    savemat(folder / "setid.mat", splits)
    patch_checksums(monkeypatch, torchvision.datasets.Flowers102)
    data = sf.load_data("flowers102", root=str(tmp_path), image_size=48)
    assert [len(data.split(s)) for s in ("train", "calibration", "validation", "test")][2:] == [5, 10]
    assert len(data.train) + len(data.calibration) == 15
    assert data.image_size == (48, 48)
    red = data.test.images[:, 0].float().mean((1, 2))
    assert torch.allclose(red, torch.arange(21.0, 31.0), atol=1.5)


def test_not_there_and_no_network(tmp_path):
    with pytest.raises(
        SurefootError, match="Data set 'mnist' is not in '.*': give --data mnist yourself, or pass download=True"
    ):
        sf.load_data("mnist", root=str(tmp_path), download=False)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_download_is_one_line(tmp_path, monkeypatch):
    from urllib.error import URLError

    def no_network(*_, **__):
        raise URLError("no route to host")

    monkeypatch.setattr("torchvision.datasets.mnist.download_and_extract_archive", no_network)
    with pytest.raises(SurefootError, match=r"Data set 'mnist' is not in '.*' and cannot be downloaded: [^\n]*\.$"):
        sf.load_data("mnist", root=str(tmp_path))


def test_a_download_is_used(tmp_path, monkeypatch):
    """torchvision's own download code, fetching from a server on this machine."""
    made = tmp_path / "made"
    write_mnist(made)
    source = tmp_path / "mirror"
    source.mkdir()
    for file in (made / "MNIST" / "raw").iterdir():
        with gzip.open(source / f"{file.name}.gz", "wb") as packed:
            packed.write(file.read_bytes())
    import torchvision

    handler = partial(SimpleHTTPRequestHandler, directory=source)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(torchvision.datasets.MNIST, "mirrors", [f"http://127.0.0.1:{server.server_port}/"])
    resources = [(f"{name}.gz", None) for name in sorted(p.name for p in (made / "MNIST" / "raw").iterdir())]
    monkeypatch.setattr(torchvision.datasets.MNIST, "resources", resources)
    data = sf.load_data("mnist", root=str(tmp_path / "root"))
    server.shutdown()
    server.server_close()
    assert len(data.test) == 20


def test_roots(monkeypatch, tmp_path):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.delenv("SUREFOOT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "surefoot" / "data"


def test_labels_are_for_folders():
    with pytest.raises(SurefootError, match="labels and class_map are for folders and files"):
        sf.load_data("digits", class_map="x.txt")


def test_real_mnist(shared_data, tmp_path):
    with tarfile.open(shared_data / "mnist.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    data = sf.load_data("mnist", root=str(tmp_path), fraction=0.1, max_images=500)
    assert len(data.test) == 500
    assert len(data.train) == pytest.approx(4800, abs=10)
    assert data.test.labels.bincount().min() > 40
