"""Hugging Face data sets from local files, with the columns that published ones have."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot.data.dataset import Dataset
from surefoot.data.hugging_face import name_parts
from surefoot.errors import SurefootError

pytestmark = pytest.mark.filterwarnings("ignore")  # of the reader's own dependencies


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    datasets.disable_progress_bars()


@pytest.fixture
def folders(class_folders: Path, tmp_path: Path) -> tuple[str, str]:
    return f"hfds/{class_folders}", str(tmp_path / "cache")


def picture(grey: int) -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (grey, grey, grey)).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


class Published:
    """Parquet files with any columns; image number k is of grey level k."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, columns: dict[str, Any], cells: dict[str, list[Any]], image: str = "img", split: str = "train") -> None:
        import datasets

        count = len(next(iter(cells.values())))
        features = datasets.Features({image: datasets.Image(), **columns})
        pictures = {image: [picture(k) for k in range(count)]}
        (self.folder / "Data").mkdir(parents=True, exist_ok=True)
        table = datasets.Dataset.from_dict(pictures | cells, features=features)
        table.to_parquet(self.folder / "Data" / f"{split}-00000-of-00001.parquet")

    def load(self, column: str = "", **options: Any) -> Dataset:
        return sf.load_data(f"hfds/{self.folder / 'Data'}{column}", root=str(self.folder / "cache"), **options)


@pytest.fixture
def published(tmp_path: Path) -> Published:
    return Published(tmp_path)


def labels_by_grey(data: Dataset) -> list[str]:
    """The class of each image, by its grey level."""
    found = {}
    for split in (data.train, data.calibration, data.validation, data.test):
        for batch in split.batches(64):
            found |= dict(zip((255 * batch.images[:, 0, 0, 0]).round().int().tolist(), batch.labels.tolist(), strict=True))
    return [data.class_names[found[grey]] for grey in sorted(found)]


def test_a_folder_with_names_of_classes(folders: tuple[str, str]) -> None:
    name, root = folders
    data = sf.load_data(name, root=root)
    assert data.class_names == ("cat", "dog", "eel")
    assert [len(data.split(s)) for s in ("train", "calibration", "validation", "test")] == [72, 9, 9, 30]
    assert data.test.labels.bincount().tolist() == [10, 10, 10]
    red = data.test.images[:, 0, 0, 0]
    assert red[data.test.labels == 0].sort().values.tolist() == list(range(50, 60))
    streamed = sf.load_data(name, root=root, memory_gib=0, workers=0)
    assert torch.equal(next(streamed.test.batches(30)).images, next(data.test.batches(30)).images)


def test_a_class_map_renumbers_by_name(folders: tuple[str, str], tmp_path: Path) -> None:
    name, root = folders
    (tmp_path / "order.txt").write_text("eel\nfox\ndog\ncat\n")
    data = sf.load_data(name, root=root, class_map=str(tmp_path / "order.txt"))
    assert data.class_names == ("eel", "fox", "dog", "cat")
    red = data.test.images[:, 0, 0, 0]
    assert red[data.test.labels == 3].sort().values.tolist() == list(range(50, 60))  # the cats
    assert data.test.labels.bincount().tolist() == [10, 0, 10, 10]


def test_columns_as_in_cifar_100(published: Published) -> None:
    from datasets import ClassLabel

    columns = {"fine_label": ClassLabel(names=["cat", "dog", "oak"]), "coarse_label": ClassLabel(names=["animal", "tree"])}
    cells = {"fine_label": [0, 1, 2] * 8, "coarse_label": [0, 0, 1] * 8}
    for split in ("train", "test"):
        published.write(columns, cells, split=split)
    with pytest.raises(SurefootError, match=r"several columns of classes, fine_label, coarse_label: .* as in '.*:fine_label'"):
        published.load()
    assert labels_by_grey(published.load(":fine_label")) == ["cat", "dog", "oak"] * 8
    assert labels_by_grey(published.load(":coarse_label")) == ["animal", "animal", "tree"] * 8
    with pytest.raises(SurefootError, match=r"column of '.*' 'fine'.*fine_label"):
        published.load(":fine")


def test_numbers_without_names(published: Published, tmp_path: Path) -> None:
    from datasets import Value

    for split in ("train", "Val"):
        published.write({"labels": Value("int64")}, {"labels": [2, 0, 1] * 8}, split=split.lower())
    data = published.load()
    assert data.class_names == ("0", "1", "2")
    assert labels_by_grey(data) == ["2", "0", "1"] * 8
    (tmp_path / "names.txt").write_text("cat\ndog\neel\nfox\n")
    named = published.load(class_map=str(tmp_path / "names.txt"))
    assert named.class_names == ("cat", "dog", "eel", "fox")
    assert labels_by_grey(named) == ["eel", "cat", "dog"] * 8


def test_words_and_no_division(published: Published) -> None:
    from datasets import Value

    published.write({"label": Value("string")}, {"label": ["dog", "cat"] * 20})
    data = published.load()
    assert data.class_names == ("cat", "dog")
    assert [len(data.split(s)) for s in ("train", "calibration", "validation", "test")] == [20, 4, 4, 12]
    assert labels_by_grey(data) == ["dog", "cat"] * 20


def test_splits_that_are_there(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    published.write({"label": datasets.Value("int64")}, {"label": [0, 1] * 5}, split="test")
    data = published.load()
    assert [len(data.split(s)) for s in ("train", "calibration", "validation", "test")] == [0, 0, 0, 10]
    published.write({"label": datasets.Value("int64")}, {"label": [0, 1] * 20}, split="train")
    read = datasets.load_dataset
    monkeypatch.setattr("datasets.load_dataset", lambda *a, **k: {**(found := read(*a, **k)), "extra": found["test"]})
    data = published.load()
    assert [len(data.split(s)) for s in ("train", "calibration", "validation", "test")] == [32, 4, 4, 10]
    assert data.notes == ("splits beside train, test are left out: extra",)


def test_two_splits_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: {"val": [1], "validation": [1]})
    with pytest.raises(SurefootError, match="two splits for validation: val, validation"):
        sf.load_data("hfds/x")


def test_hidden_labels_are_refused(published: Published) -> None:
    from datasets import ClassLabel

    published.write({"label": ClassLabel(names=["a", "b"])}, {"label": [0, 1] * 6})
    published.write({"label": ClassLabel(names=["a", "b"])}, {"label": [-1] * 6}, split="test")
    with pytest.raises(SurefootError, match=r"got -1 in the test split of '.*' \(the publisher hides its labels\)"):
        published.load()


def test_what_is_no_class_is_refused(published: Published) -> None:
    from datasets import Value

    published.write({"score": Value("float32")}, {"score": [0.5, 1.5]})
    with pytest.raises(SurefootError, match="no column called label, but .*img"):
        published.load()
    with pytest.raises(SurefootError, match="must be whole numbers or words, got 0.5"):
        published.load(":score")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SurefootError, match=r"^Data 'hfds/.*nowhere' cannot be opened: \S[^\n]*\.$"):
        sf.load_data(f"hfds/{tmp_path / 'nowhere'}", root=str(tmp_path / "cache"))


def test_name_parts() -> None:
    assert name_parts("hfds/uoft-cs/cifar100:fine_label") == ("uoft-cs/cifar100", ["fine_label"], None)
    assert name_parts("hfds/uoft-cs/cifar100:plain:fine_label@test") == ("uoft-cs/cifar100", ["plain", "fine_label"], "test")
    assert name_parts("hfds/uoft-cs/cifar10@test[:10]") == ("uoft-cs/cifar10", [], "test[:10]")
    assert name_parts("hfds/uoft-cs/cifar10") == ("uoft-cs/cifar10", [], None)
    assert name_parts("hfds/C:/pets") == ("C:/pets", [], None)
    assert name_parts("hfds/C:\\pets") == ("C:\\pets", [], None)
    assert name_parts("hfds/a@b/pets") == ("a@b/pets", [], None)


def test_a_named_split_is_the_test_set(folders: tuple[str, str]) -> None:
    """`@SPLIT` takes that split alone, whatever it is called, also a slice of it."""
    name, cache = folders
    data = sf.load_data(f"{name}@train", root=cache)
    assert (len(data.train), len(data.test)) == (0, 90)
    assert len(sf.load_data(f"{name}@test[:4]", root=cache).test) == 4
    with pytest.raises(SurefootError, match="cannot be opened.*nothing"):
        sf.load_data(f"{name}@nothing", root=cache)


def test_a_configuration_is_told_from_a_column(folders: tuple[str, str]) -> None:
    """A word behind a colon is a configuration where the data set has one of that name, else a column."""
    name, cache = folders
    plain = sf.load_data(name, root=cache)
    named = sf.load_data(f"{name}:default", root=cache)
    both = sf.load_data(f"{name}:default:label", root=cache)
    assert torch.equal(named.test.images, plain.test.images)
    assert torch.equal(both.test.labels, plain.test.labels)
