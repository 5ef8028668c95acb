import csv

import numpy as np
import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot.data.collection import read_class_map
from surefoot.data.image_files import read_image
from surefoot.errors import SurefootError


def sizes(data):
    return [len(data.split(name)) for name in ("train", "calibration", "validation", "test")]


def assert_disjoint(data):
    indices = torch.cat([data.split(name).indices for name in ("train", "calibration", "validation", "test")])
    assert indices.unique().numel() == indices.numel()


def test_class_folders_with_train_and_test(class_folders):
    data = sf.load_data(str(class_folders))
    assert data.class_names == ("cat", "dog", "eel")
    assert sizes(data) == [72, 9, 9, 30]
    assert_disjoint(data)
    assert data.test.labels.bincount().tolist() == [10, 10, 10]
    assert (data.image_size, data.channels) == ((32, 32), 3)
    red = data.test.images[:, 0, 0, 0]
    assert red.tolist() == [*range(50, 60), *range(150, 160), *(n % 256 for n in range(250, 260))]


def test_class_folders_alone_are_divided(tmp_path, write_images):
    for name in ("a", "b"):
        write_images(tmp_path / "set" / name, 50)
    data = sf.load_data(str(tmp_path / "set"))
    assert sizes(data) == [50, 10, 10, 30]
    assert_disjoint(data)
    again, other = sf.load_data(str(tmp_path / "set")), sf.load_data(str(tmp_path / "set"), seed=1)
    assert again.test.indices.equal(data.test.indices)
    assert not other.test.indices.equal(data.test.indices)


def test_train_and_val_only_make_val_the_test_split(class_folders):
    (class_folders / "test").rename(class_folders / "val")
    data = sf.load_data(str(class_folders))
    assert sizes(data) == [72, 9, 9, 30]
    assert set(data.test.images[:, 0, 0, 0].tolist()) == {n % 256 for n in (*range(50, 60), *range(150, 160), *range(250, 260))}


@pytest.mark.parametrize(("train", "test"), [("Train", "Test"), ("TRAINING", "Testing")])
def test_split_folders_in_capitals(class_folders, train, test):
    (class_folders / "train").rename(class_folders / train)
    (class_folders / "test").rename(class_folders / test)
    data = sf.load_data(str(class_folders))
    assert data.class_names == ("cat", "dog", "eel")
    assert sizes(data) == [72, 9, 9, 30]


def test_two_folders_for_one_split(class_folders, write_images):
    for name in ("val", "Validation"):
        write_images(class_folders / name / "cat", 2)
    with pytest.raises(SurefootError, match="has two folders for validation: 'Validation' and 'val'; keep one"):
        sf.load_data(str(class_folders))


def test_folders_beside_the_splits_are_noted(class_folders, write_images, caplog):
    write_images(class_folders / "holdout" / "cat", 2)
    data = sf.load_data(str(class_folders))
    assert sizes(data) == [72, 9, 9, 30]
    assert data.notes == ("folders beside train, test are left out: holdout",)
    assert "left out: holdout" in caplog.text


def test_train_can_be_a_class(tmp_path, write_images):
    for name in ("car", "train", "plane"):
        write_images(tmp_path / "vehicles" / name, 10)
    data = sf.load_data(str(tmp_path / "vehicles"))
    assert data.class_names == ("car", "plane", "train")
    assert sum(sizes(data)) == 30


def test_splits_without_class_folders_are_no_classes(class_folders, tmp_path, write_images):
    for name in ("train", "test"):
        write_images(tmp_path / "flat" / name, 10)
        with pytest.raises(SurefootError, match="has no class folders; for a flat folder, give a CSV"):
            sf.load_data(str(tmp_path / "flat"))
    write_images(class_folders / "val", 3)
    with pytest.raises(SurefootError, match="val' has no class folders"):
        sf.load_data(str(class_folders))


def test_all_of_train_val_and_test(class_folders, write_images):
    for name in ("cat", "dog", "eel"):
        write_images(class_folders / "val" / name, 5, start=200)
    data = sf.load_data(str(class_folders))
    assert sizes(data) == [81, 9, 15, 30]
    assert_disjoint(data)


def test_a_test_folder_alone_can_be_audited(class_folders, quicker):
    import shutil

    shutil.rmtree(class_folders / "train")
    data = sf.load_data(str(class_folders))
    assert sizes(data) == [0, 0, 0, 30]
    model = sf.load_model("small-resnet", data=data, seed=0)
    assert sf.audit(model, data, progress=False).subject["images"] == 30
    with pytest.raises(SurefootError, match="Training needs at least 2 images to train on"):
        sf.fit(model, sf.objectives.CrossEntropy(), data, progress=False)
    with pytest.raises(SurefootError, match="The train split has no images"):
        sf.audit(model, data, split="train", progress=False)


def test_a_class_map_gives_another_order(class_folders, tmp_path):
    orders = {"lines.txt": "eel\ncat\nbird\ndog\n", "numbers.csv": "cat,1\neel,0\ndog,3\nbird,2\n"}
    orders |= {"map.json": '{"eel": 0, "cat": 1, "bird": 2, "dog": 3}', "list.json": '["eel", "cat", "bird", "dog"]'}
    for name, text in orders.items():
        (tmp_path / name).write_text(text)
        data = sf.load_data(str(class_folders), class_map=str(tmp_path / name))
        assert data.class_names == ("eel", "cat", "bird", "dog"), name
        assert data.test.labels.unique().tolist() == [0, 1, 3]
        assert data.test.labels[data.test.images[:, 0, 0, 0] < 60].unique().tolist() in ([1], [0, 1])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.txt", "cat\ndog\n", "Unknown class .it is not in the class map. 'eel'"),
        ("m.csv", "cat,0\ndog,0\neel,1\n", "must give each class its own number from 0 to 2"),
        ("m.json", "{", "is not valid JSON"),
        ("m.json", "5", "must be a list of names, or give each name its number"),
        ("m.json", '"eel"', "must be a list of names, or give each name its number"),
        ("m.json", '{"cat": null}', "must be a list of names, or give each name its number"),
        ("m.json", "[null]", "must be a list of names, or give each name its number"),
        ("m.json", '{"a": 0, "b": "1"}', "must be a list of names, or give each name its number"),
        ("m.txt", b"caf\xe9\n", "class map '.*m.txt' must be text in UTF-8"),
        ("none.txt", None, "No class map at"),
    ],
)
def test_bad_class_maps(class_folders, tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SurefootError, match=message):
        sf.load_data(str(class_folders), class_map=str(tmp_path / name))


def test_a_class_map_with_a_byte_order_mark(tmp_path):
    (tmp_path / "m.txt").write_text("eel\ncat\n", encoding="utf-8-sig")
    assert read_class_map(tmp_path / "m.txt") == ("eel", "cat")


def write_csv(path, rows, header=("file", "label")):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


class TestFlatFolderWithCsv:
    @pytest.fixture
    def flat(self, tmp_path, write_images):
        write_images(tmp_path / "flat", 40)
        return tmp_path / "flat"

    def test_names_as_labels(self, flat):
        write_csv(flat / "labels.csv", [(f"{n:04}.png", "even" if n % 2 == 0 else "odd") for n in range(40)])
        data = sf.load_data(str(flat))
        assert data.class_names == ("even", "odd")
        assert ((data.test.images[:, 0, 0, 0] % 2) == data.test.labels).all()
        assert sum(sizes(data)) == 40

    def test_numbers_and_a_split_column(self, flat, tmp_path):
        rows = [(f"{n:04}.png", 2 * (n % 2), "train" if n < 30 else "val") for n in range(40)]
        write_csv(tmp_path / "l.csv", rows, ("filename", "target", "split"))
        data = sf.load_data(str(flat), labels=str(tmp_path / "l.csv"))
        assert data.class_names == ("0", "1", "2")
        assert sorted(data.test.images[:, 0, 0, 0].tolist()) == list(range(30, 40))

    @pytest.mark.parametrize(
        ("rows", "header", "message"),
        [
            ([(f"{n:04}.png", "a") for n in range(39)], ("file", "label"), "1 of 40 images have no label in .*0039.png"),
            ([(f"{n:04}.png", "") for n in range(40)], ("file", "label"), "has no label for '0000.png'"),
            ([(f"{n:04}.png", "a") for n in range(41)], ("file", "label"), r"No image of 'labels\.csv' at .*0040.png"),
            ([(f"{n:04}.png", "a") for n in range(40)], ("name", "y"), "must have columns 'file' and 'label', got name, y"),
            ([], ("file", "label"), "got nothing"),
            ([(f"{n % 40:04}.png", "a") for n in range(42)], ("file", "label"), "lists 2 files more than once"),
            ([("0000.png", "a"), ("0001.png",)], ("file", "label"), "must have 2 cells in every row, got 1 in line 3"),
            ([("0000.png", "a", "b")], ("file", "label"), "must have 2 cells in every row, got 3 in line 2"),
            ([(f"{n:04}.png", n / 2) for n in range(40)], ("file", "label"), "names, or whole numbers from 0, got '0.5'"),
            ([(f"{n:04}.png", n % 2 - 1) for n in range(40)], ("file", "label"), "names, or whole numbers from 0, got '-1'"),
        ],
    )
    def test_bad_csv(self, flat, rows, header, message):
        write_csv(flat / "labels.csv", rows, header)
        with pytest.raises(SurefootError, match=message):
            sf.load_data(str(flat))

    def test_spaces_and_a_byte_order_mark(self, flat):
        lines = ["file, label , split", *(f" {n:04}.png, {'cat' if n % 2 else 'cat '}, train " for n in range(30))]
        lines += [f"{n:04}.png,dog,test" for n in range(30, 40)]
        lines[1] = "0000.png,dog,train"
        (flat / "labels.csv").write_text("\r\n".join(lines), encoding="utf-8-sig")
        data = sf.load_data(str(flat))
        assert data.class_names == ("cat", "dog")
        assert data.test.labels.tolist() == [1] * 10

    def test_another_encoding(self, flat):
        (flat / "labels.csv").write_text("file,label\n0000.png,caf\u00e9\n", encoding="latin-1")
        with pytest.raises(SurefootError, match="labels '.*labels.csv' must be text in UTF-8"):
            sf.load_data(str(flat))

    def test_whole_numbers_with_a_point_and_a_class_without_images(self, flat, caplog):
        write_csv(flat / "labels.csv", [(f"{n:04}.png", f"{n % 3 + 1}.0") for n in range(40)])
        data = sf.load_data(str(flat))
        assert data.class_names == ("0", "1", "2", "3")
        assert torch.equal(data.test.images[:, 0, 0, 0] % 3 + 1, data.test.labels)
        assert data.notes[0] == "1 of 4 classes have no images: 0"
        assert data.notes[1] == "no splits were given, and the test split is 12 of 40 images"
        assert "1 of 4 classes have no images: 0" in caplog.text

    def test_bad_split_name_and_label_out_of_range(self, flat, tmp_path):
        write_csv(flat / "labels.csv", [(f"{n:04}.png", 1, "tets") for n in range(40)], ("file", "label", "split"))
        with pytest.raises(SurefootError, match="Unknown split 'tets'. Did you mean 'test'"):
            sf.load_data(str(flat))
        write_csv(flat / "labels.csv", [(f"{n:04}.png", n) for n in range(40)])
        (tmp_path / "map.txt").write_text("a\nb\n")
        with pytest.raises(SurefootError, match="labels must be in 0 to 1, got 39"):
            sf.load_data(str(flat), class_map=str(tmp_path / "map.txt"))

    def test_without_a_csv(self, flat):
        with pytest.raises(SurefootError, match="has no class folders; for a flat folder, give a CSV of labels"):
            sf.load_data(str(flat))
        with pytest.raises(SurefootError, match="No labels at"):
            sf.load_data(str(flat), labels="nothing.csv")


class TestBadInput:
    def test_missing_folder(self, class_folders):
        with pytest.raises(SurefootError, match="No data folder at .*Did you mean '.*pets'"):
            sf.load_data(str(class_folders.parent / "pet"))
        with pytest.raises(SurefootError, match="No data folder at"):
            sf.load_data("pets", root=str(class_folders))

    def test_root_and_name(self, class_folders):
        assert len(sf.load_data("pets", root=str(class_folders.parent)).test) == 30

    def test_empty_class_folder(self, class_folders):
        (class_folders / "train" / "fox").mkdir()
        with pytest.raises(SurefootError, match="Class folder '.*fox' has no images; put some there, or remove it"):
            sf.load_data(str(class_folders))

    def test_a_class_that_train_lacks(self, class_folders, write_images):
        write_images(class_folders / "test" / "fox", 2)
        with pytest.raises(SurefootError, match=r"Unknown class of test \(train has no such folder\) 'fox'"):
            sf.load_data(str(class_folders))

    @pytest.mark.parametrize("content", [b"", b"this is no image", None])
    def test_unreadable_images_are_named_or_skipped_and_counted(self, class_folders, content, caplog):
        victim = class_folders / "test" / "dog" / "0155.png"
        whole = victim.read_bytes()
        victim.write_bytes(whole[: len(whole) // 2] if content is None else content)
        with pytest.raises(SurefootError, match="Cannot read image '.*0155.png': .*--skip-bad-images"):
            sf.load_data(str(class_folders))
        data = sf.load_data(str(class_folders), skip_bad_images=True)
        assert len(data.test) == 29
        assert data.test.labels.bincount().tolist() == [10, 9, 10]
        assert data.notes == ("1 images of test cannot be read and are left out",)
        assert "1 images cannot be read and are left out; the first is" in caplog.text

    def test_different_sizes(self, class_folders):
        odd = class_folders / "train" / "cat" / "0000.png"
        Image.new("RGB", (40, 20)).save(odd)
        with pytest.raises(SurefootError, match="image_size must be given"):
            sf.load_data(str(class_folders))
        assert sf.load_data(str(class_folders), image_size=16).image_size == (16, 16)

    def test_one_odd_size_among_many(self, tmp_path, write_images):
        write_images(tmp_path / "set" / "a", 300, size=(8, 8))
        Image.new("RGB", (9, 8)).save(tmp_path / "set" / "a" / "0001.png")
        with pytest.raises(SurefootError, match="Cannot read image '.*a/0001.png': it is 8 x 9, and the others are 8 x 8"):
            sf.load_data(str(tmp_path / "set"))

    @pytest.mark.parametrize("options", [{"fraction": 0}, {"fraction": 1.5}, {"max_images": 0}, {"crop_pct": 2.0}])
    def test_options_out_of_range(self, class_folders, options):
        with pytest.raises(SurefootError, match=f"{next(iter(options))} must be"):
            sf.load_data(str(class_folders), **options)

    def test_neither_folder_nor_npz(self, tmp_path):
        (tmp_path / "data.txt").touch()
        with pytest.raises(SurefootError, match="is neither a folder nor a .npz or .csv file"):
            sf.load_data(str(tmp_path / "data.txt"))


def test_all_kinds_of_files_become_rgb(tmp_path):
    """Greyscale, palette, transparent, CMYK, 16-bit and bilevel images with the same content, mixed in one folder."""
    ramp = np.tile(np.arange(0, 256, 8, dtype=np.uint8), (32, 1))
    grey = Image.fromarray(ramp)
    folder = tmp_path / "set" / "a"
    folder.mkdir(parents=True)
    colour = Image.merge("RGB", [grey, grey, grey])
    colour.save(folder / "rgb.png")
    grey.save(folder / "grey.png")
    grey.convert("P").save(folder / "palette.png")
    colour.convert("RGBA").save(folder / "alpha.png")
    grey.convert("LA").save(folder / "grey_alpha.png")
    colour.convert("CMYK").save(folder / "cmyk.tif")
    colour.convert("CMYK").save(folder / "cmyk.jpg", quality=100)
    Image.fromarray(ramp.astype(np.uint16) * 257).save(folder / "sixteen.png")
    Image.fromarray(ramp.astype(np.uint16) * 257).save(folder / "sixteen.tif")
    for name in ("palette.gif",):
        grey.save(folder / name)
    grey.convert("1").save(folder / "two_levels.png")
    data = sf.load_data(str(tmp_path / "set"))
    images = torch.cat([data.split(name).images for name in ("train", "calibration", "validation", "test")])
    assert images.shape[1:] == (3, 32, 32)
    differences = (images.int() - torch.from_numpy(ramp).int()).abs().amax((1, 2, 3)).sort().values
    assert (differences[:-1] <= 3).all()  # JPEG's loss
    assert differences[-1] > 100  # two levels cannot hold a ramp


def test_sixteen_bits_are_known_by_the_mode_and_not_by_the_values(tmp_path):
    levels = np.array([[0, 100, 255], [256, 1000, 65535]], dtype=np.uint16)
    dark = np.minimum(levels, 255)
    for suffix in ("png", "tif", "pgm"):
        for name, pixels in (("bright", levels), ("dark", dark)):
            Image.fromarray(pixels).save(tmp_path / f"{name}.{suffix}")
            found = np.asarray(read_image(tmp_path / f"{name}.{suffix}"))
            assert found[..., 0].tolist() == (pixels // 256).tolist(), (name, suffix)


@pytest.mark.parametrize("level", [65536, -1])
def test_more_than_sixteen_bits_are_refused(tmp_path, level):
    Image.fromarray(np.full((4, 4), level, dtype=np.int32)).save(tmp_path / "deep.tif")
    with pytest.raises(SurefootError, match=f"deep.tif': its levels are {level} to {level}, and 16 bits hold 0 to 65535"):
        read_image(tmp_path / "deep.tif")


def test_a_floating_point_image_is_named(tmp_path, write_images):
    write_images(tmp_path / "set" / "a", 10)
    Image.fromarray(np.zeros((32, 32), dtype=np.float32)).save(tmp_path / "set" / "a" / "f.tif")
    with pytest.raises(SurefootError, match="f.tif': floating-point images are not supported"):
        sf.load_data(str(tmp_path / "set"))


def test_fraction_and_max_images_are_stratified(class_folders):
    data = sf.load_data(str(class_folders), fraction=0.5, max_images=9)
    assert data.train.labels.bincount().tolist() == [12, 12, 12]
    assert data.test.labels.bincount().tolist() == [3, 3, 3]
    assert sf.load_data(str(class_folders), max_images=1000).test.indices.numel() == 30
    whole = sf.load_data(str(class_folders))
    assert set(data.train.indices.tolist()) < set(whole.train.indices.tolist())
    assert data.validation.indices.equal(whole.validation.indices)


def test_the_source_loads_the_same_again(class_folders):
    data = sf.load_data(str(class_folders), image_size=(20, 24), fraction=0.5, seed=3)
    again = sf.load_data(**data.source)
    assert torch.equal(again.train.images, data.train.images)
    assert again.source == data.source


def test_hidden_files_are_no_images_and_links_are_followed(tmp_path, write_images):
    for name in ("cat", "dog"):
        write_images(tmp_path / "set" / name, 10)
        write_images(tmp_path / "set" / name / ".ipynb_checkpoints", 2)
    (tmp_path / "set" / "cat" / "._0000.png").write_bytes(b"of a system")
    (tmp_path / "set" / "dog" / "folder.jpg").mkdir()
    write_images(tmp_path / "elsewhere", 5, start=20)
    (tmp_path / "set" / "cat" / "more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "circle").symlink_to(tmp_path / "set" / "cat")
    (tmp_path / "set" / "dog" / "real").mkdir()
    write_images(tmp_path / "set" / "dog" / "real", 3, start=30)
    (tmp_path / "set" / "dog" / "linked").symlink_to(tmp_path / "set" / "dog" / "real")  # a picture counts once
    data = sf.load_data(tmp_path / "set")
    assert sum(sizes(data)) == 28
    assert not any("linked" in str(path) for path in data.train.files)


def test_a_flat_folder_with_hidden_files(tmp_path, write_images):
    write_images(tmp_path / "flat", 12)
    (tmp_path / "flat" / "._0000.png").write_bytes(b"of a system")
    (tmp_path / "flat" / "labels.csv").write_text("file,label\n" + "".join(f"{k:04}.png,{k % 2}\n" for k in range(12)))
    assert sum(sizes(sf.load_data(tmp_path / "flat"))) == 12


def test_names_with_commas_in_a_class_map(tmp_path):
    (tmp_path / "m.txt").write_text('tench, Tinca tinca\n\ngoldfish, Carassius auratus\n"quoted, too"\nplain\n')
    expected = ("tench, Tinca tinca", "goldfish, Carassius auratus", "quoted, too", "plain")
    assert read_class_map(tmp_path / "m.txt") == expected
    (tmp_path / "open.txt").write_text('"open\nb\nc\n')
    with pytest.raises(SurefootError, match="has a quotation mark that is not closed"):
        read_class_map(tmp_path / "open.txt")


def test_paths_are_as_good_as_text(class_folders, tmp_path):
    (tmp_path / "m.txt").write_text("eel\ndog\ncat\n")
    data = sf.load_data(class_folders.relative_to(tmp_path), root=tmp_path, class_map=tmp_path / "m.txt")
    text = sf.load_data("pets", root=str(tmp_path), class_map=str(tmp_path / "m.txt"))
    assert data.source == text.source
    assert data.class_names == ("eel", "dog", "cat")


def test_a_split_of_bad_images_alone_is_left_empty(tmp_path, write_images):
    for split, count in (("train", 20), ("val", 5), ("test", 1)):
        for name in ("cat", "dog"):
            write_images(tmp_path / "set" / split / name, count)
    for name in ("cat", "dog"):
        (tmp_path / "set" / "test" / name / "0000.png").write_bytes(b"broken")
    data = sf.load_data(tmp_path / "set", skip_bad_images=True)
    assert len(data.test) == 0
    assert "2 images of test cannot be read and are left out" in data.notes
    for path in (tmp_path / "set").rglob("*.png"):
        path.write_bytes(b"broken")
    with pytest.raises(SurefootError, match="images can be read|differ in size|Cannot read"):
        sf.load_data(tmp_path / "set", skip_bad_images=True, image_size=32)


def test_what_is_only_audited_is_a_test_set_and_the_rest_is_left_unread(tmp_path, monkeypatch):
    """Folders without splits are all test; with `lazy` no file of train is opened before somebody asks."""
    for split in ("train", "test"):
        for name in ("cat", "dog"):
            (tmp_path / "both" / split / name).mkdir(parents=True)
            (tmp_path / "alone" / name).mkdir(parents=True, exist_ok=True)
            for number in range(10):
                picture = Image.new("RGB", (8, 8), (number, 0, 0))
                picture.save(tmp_path / "both" / split / name / f"{number}.png")
                picture.save(tmp_path / "alone" / name / f"{number}.png")
    data = sf.load_data(tmp_path / "alone", audited=True)
    assert (len(data.test), len(data.train)) == (20, 0)
    assert data.source["audited"]
    assert len(sf.load_data(**data.source).test) == 20
    assert len(sf.load_data(tmp_path / "alone").test) == 6
    opened = []
    real = read_image
    monkeypatch.setattr(
        "surefoot.data.collection.read_image", lambda file, *rest: opened.append(str(file)) or real(file, *rest)
    )
    data = sf.load_data(tmp_path / "both", lazy=True, audited=True)
    few = len(opened)
    sf.load_data(tmp_path / "both")
    assert len(opened) - few == few + 18  # train and validation
    assert len(data.train) == 16
    batch = next(data.train.batches(16))
    assert torch.equal(batch.images, next(sf.load_data(tmp_path / "both").train.batches(16)).images)
