"""Objects of Python as data: whatever brings the pictures, the pixels and labels are those of the folder."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, Subset, SubsetRandomSampler, TensorDataset
from torchvision import transforms
from torchvision.datasets import ImageFolder

import surefoot as sf
from surefoot.errors import SurefootError, UnknownName

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
pytestmark = pytest.mark.filterwarnings("ignore:Unable to import Axes3D")


@pytest.fixture
def plain(class_folders):
    """The folder as we read it: 30 test images of three classes."""
    return sf.load_data(class_folders)


def steps(*more):
    return transforms.Compose([transforms.ToTensor(), *more])


class Dictionaries(torch.utils.data.Dataset):
    def __init__(self, inner, image="img", label="target"):
        self.inner, self.keys = inner, (image, label)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return dict(zip(self.keys, self.inner[index], strict=True))


class Stream(IterableDataset):
    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        return iter(self.inner[row] for row in range(len(self.inner)))


def bytes_of(image, label):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1), label


def arrays(folder):
    pairs = [(np.array(image), label) for image, label in ImageFolder(folder)]
    return np.stack([image for image, _ in pairs]), np.array([label for _, label in pairs])


def frame(folder, names=True):
    rows = [(str(path), folder_name) for path, folder_name in listed(folder)]
    return pandas.DataFrame(rows, columns=["path", "label"])


def listed(folder):
    return [(path, path.parent.name) for path in sorted(folder.glob("*/*.png"))]


KINDS = {
    "Pillow": lambda folder: ImageFolder(folder),
    "floats": lambda folder: ImageFolder(folder, steps()),
    "normalised": lambda folder: ImageFolder(folder, steps(transforms.Normalize(MEAN, STD))),
    "subset": lambda folder: Subset(ImageFolder(folder, steps(transforms.Normalize(MEAN, STD))), range(30)),
    "bytes": lambda folder: [bytes_of(*pair) for pair in ImageFolder(folder)],
    "dictionaries": lambda folder: Dictionaries(ImageFolder(folder)),
    "loader": lambda folder: DataLoader(ImageFolder(folder, steps()), batch_size=7, shuffle=True),
    "loader of dictionaries": lambda folder: DataLoader(Dictionaries(ImageFolder(folder, steps())), batch_size=7),
    "stream": lambda folder: Stream(ImageFolder(folder, steps())),
    "loader of a stream": lambda folder: DataLoader(Stream(ImageFolder(folder, steps())), batch_size=7),
    "NumPy": arrays,
    "torch": lambda folder: tuple(map(torch.from_numpy, arrays(folder))),
    "channels first": lambda folder: (torch.from_numpy(arrays(folder)[0]).permute(0, 3, 1, 2) / 255, arrays(folder)[1]),
    "levels as floats": lambda folder: (arrays(folder)[0].astype(np.float32), arrays(folder)[1]),
    "named arrays": lambda folder: dict(zip(("images", "labels"), arrays(folder), strict=True)),
    "tensors": lambda folder: TensorDataset(torch.from_numpy(arrays(folder)[0]), torch.from_numpy(arrays(folder)[1])),
    "frame": frame,
    "list": listed,
}


@pytest.mark.parametrize("kind", KINDS)
def test_pixels_and_labels_are_those_of_the_folder(class_folders, plain, kind):
    data = sf.load_data(KINDS[kind](class_folders / "test"))
    assert torch.equal(data.test.images, plain.test.images)
    assert torch.equal(data.test.labels, plain.test.labels)
    assert len(data.train) == len(data.calibration) == 0
    assert data.source == {}


@pytest.mark.parametrize("kind", ["Pillow", "loader", "subset", "frame", "list"])
def test_names_of_classes_are_kept(class_folders, kind):
    assert sf.load_data(KINDS[kind](class_folders / "test")).class_names == ("cat", "dog", "eel")


def test_what_was_found_is_said(class_folders):
    notes = " ".join(sf.load_data(KINDS["normalised"](class_folders / "test")).notes)
    assert "floats from" in notes
    assert "channels first; the transform's normalisation was undone (mean 0.485, 0.456, 0.406, std 0.229" in notes
    assert "a lone set is a test set" in notes
    assert "whole numbers from 0 to 255, channels last" in " ".join(sf.load_data(arrays(class_folders / "test")).notes)
    assert "divided by 255" in " ".join(sf.load_data(KINDS["levels as floats"](class_folders / "test")).notes)


def test_splits_are_kept_and_the_missing_ones_carved_out_of_train(class_folders, plain):
    data = sf.load_data({"train": ImageFolder(class_folders / "train"), "val": ImageFolder(class_folders / "test")})
    assert [len(data.split(name)) for name in ("train", "calibration", "validation", "test")] == [72, 9, 9, 30]
    assert torch.equal(data.test.images, plain.test.images)
    assert torch.equal(data.train.images, plain.train.images)
    alone = sf.load_data({"train": ImageFolder(class_folders / "train")})
    assert [len(alone.split(name)) for name in ("train", "calibration", "validation", "test")] == [45, 9, 9, 27]


def test_pictures_of_several_sizes_follow_the_preprocessing(tmp_path, write_images):
    for name, size in (("a", (40, 50)), ("b", (30, 60))):
        write_images(tmp_path / "test" / name, 4, size)
    ours = sf.load_data(tmp_path, image_size=24)
    theirs = sf.load_data(ImageFolder(tmp_path / "test"), image_size=24)
    assert torch.equal(ours.test.images, theirs.test.images)


def test_a_set_that_does_not_fit_is_read_again_for_each_batch(class_folders, plain):
    data = sf.load_data(ImageFolder(class_folders / "test"), memory_gib=1e-6, workers=0)
    batch = next(iter(data.test.batches(30)))
    assert torch.equal((batch.images * 255).round().byte(), plain.test.images)


def test_a_loader_gives_what_its_sampler_takes(class_folders, plain):
    loader = DataLoader(ImageFolder(class_folders / "test", steps()), sampler=SubsetRandomSampler([5, 1, 20]))
    assert torch.equal(sf.load_data(loader).test.images, plain.test.images[[1, 5, 20]])


def test_a_loader_is_read_by_its_own_collate(class_folders, plain):
    def bgr(batch):
        return torch.stack([image.flip(0) for image, _ in batch]), torch.tensor([label for _, label in batch])

    data = sf.load_data(DataLoader(ImageFolder(class_folders / "test", steps()), batch_size=4, collate_fn=bgr))
    assert torch.equal(data.test.images, plain.test.images.flip(1))


def test_a_csv_of_files_and_labels(class_folders, plain, tmp_path):
    frame(class_folders / "test").to_csv(tmp_path / "all.csv", index=False)
    data = sf.load_data(tmp_path / "all.csv")
    assert torch.equal(data.test.images, plain.test.images)
    assert data.class_names == ("cat", "dog", "eel")
    short = [(f"{path.parent.name}/{path.name}", name) for path, name in listed(class_folders / "test")]
    rows = "file,label,split\n" + "".join(
        f"{path},{name},{'test' if n % 3 else 'train'}\n" for n, (path, name) in enumerate(short)
    )
    (tmp_path / "some.csv").write_text(rows)
    divided = sf.load_data(tmp_path / "some.csv", root=class_folders / "test")
    assert (len(divided.test), len(divided.train) + len(divided.calibration) + len(divided.validation)) == (20, 10)


def test_values_that_were_normalised_by_hand_are_refused_or_undone(class_folders, plain):
    images, labels = arrays(class_folders / "test")
    values = (torch.from_numpy(images) / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
    with pytest.raises(SurefootError, match=r"as after a normalisation.*normalised=\(mean, std\)"):
        sf.load_data((values, labels))
    assert torch.equal(sf.load_data((values, labels), normalised=(MEAN, STD)).test.images, plain.test.images)
    with pytest.raises(SurefootError, match="instead of 0 to 1"):
        sf.load_data((values * 3, labels), normalised=(MEAN, STD))


def test_rounding_to_eight_bits_is_said():
    fine = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    notes = " ".join(sf.load_data((fine, torch.arange(6) % 2)).notes)
    assert "rounded to 8 bits, by at most 0.00" in notes


def test_refusals_say_what_to_pass(class_folders):
    grey = np.zeros((4, 3, 9, 3), np.uint8)
    with pytest.raises(SurefootError, match="channel_order='first' or 'last'"):
        sf.load_data((grey, np.arange(4) % 2))
    assert sf.load_data((grey, np.arange(4) % 2), channel_order="last").image_size == (3, 9)
    with pytest.raises(UnknownName, match="Did you mean 'last'"):
        sf.load_data((grey, np.arange(4) % 2), channel_order="lats")
    with pytest.raises(SurefootError, match="no image called image, images, img, .* but left, right"):
        sf.load_data([{"left": 1, "right": 2}])
    with pytest.raises(SurefootError, match="another picture each time"):
        sf.load_data(ImageFolder(class_folders / "test", transforms.Compose([transforms.RandomCrop(8), transforms.ToTensor()])))
    with pytest.raises(SurefootError, match="A label must be one whole number or a word"):
        sf.load_data([(Image.new("RGB", (8, 8)), [0.2, 0.8])])
    with pytest.raises(SurefootError, match="Data must be a name, a folder, .*, got int"):
        sf.load_data(3)
    with pytest.raises(SurefootError, match="empty cells"):
        sf.load_data(pandas.DataFrame({"file": ["a.png", None], "label": ["x", "y"]}))
    with pytest.raises(SurefootError, match="normalised and channel_order are for objects"):
        sf.load_data("digits", normalised=(0, 1))


@pytest.mark.filterwarnings("ignore")  # of the reader's own dependencies
def test_hugging_face_objects(class_folders, plain, tmp_path, monkeypatch):
    """`TypeError: 'NoneType' object is not callable` it was; also with a format or a transform on the object."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    datasets.disable_progress_bars()
    every = datasets.load_dataset(str(class_folders), cache_dir=str(tmp_path / "cache"))
    data = sf.load_data(every)
    assert data.class_names == ("cat", "dog", "eel")
    assert torch.equal(data.test.images, plain.test.images)
    assert len(data.train) == 72
    alone = sf.load_data(every["test"].with_transform(lambda batch: None))
    assert torch.equal(alone.test.images, plain.test.images)
    assert (len(alone.train), len(alone.test)) == (0, 30)
    with pytest.raises(SurefootError, match="is a stream"):
        sf.load_data(every["test"].to_iterable_dataset())
