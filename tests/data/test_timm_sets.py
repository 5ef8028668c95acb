"""What timm's readers read, from local files: webdataset shards."""

import importlib.util
import io
import json
import tarfile
from pathlib import Path

import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot.data import timm_sets
from surefoot.errors import SurefootError
from surefoot.seeds import generator


@pytest.fixture
def shards(tmp_path):
    """Two shards of a webdataset: train of 200 images, validation of 30."""
    pytest.importorskip("webdataset")
    folder, info = tmp_path / "shards", {"splits": {}}
    folder.mkdir()
    number = 0
    for split, count in (("train", 200), ("validation", 30)):
        with tarfile.open(folder / f"{split}-0.tar", "w") as archive:
            for _ in range(count):
                buffer = io.BytesIO()
                Image.new("RGB", (40, 36), (number % 256, 0, 0)).save(buffer, "PNG")
                for suffix, content in (("png", buffer.getvalue()), ("cls", str(number % 3).encode())):
                    entry = tarfile.TarInfo(f"{number:05}.{suffix}")
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
                number += 1
        info["splits"][split] = {
            "name": split,
            "num_samples": count,
            "filenames": [f"{split}-0.tar"],
            "shard_lengths": [count],
        }
    (folder / "_info.json").write_text(json.dumps(info))
    (tmp_path / "classes.txt").write_text("a\nb\nc\n")
    return str(folder), str(tmp_path / "classes.txt")


@pytest.mark.filterwarnings("ignore")
class TestShards:
    def load(self, shards, **options):
        root, classes = shards
        return sf.load_data("wds/shards", root=root, class_map=classes, image_size=32, **options)

    def test_splits_are_disjoint_and_complete(self, shards):
        data = self.load(shards)
        assert len(data.test) == 30
        seen = {}
        for name in ("train", "calibration", "validation", "test"):
            batches = list(data.split(name).batches(16))
            seen[name] = torch.cat([batch.indices for batch in batches]).tolist()
            assert len(seen[name]) == len(data.split(name))
            red = torch.cat([batch.images[:, 0, 16, 16] for batch in batches]) * 255
            assert red.round().tolist() == [index % 256 for index in seen[name]]
            assert torch.cat([batch.labels for batch in batches]).tolist() == [index % 3 for index in seen[name]]
        assert sorted(index for indices in seen.values() for index in indices) == list(range(230))
        assert 8 <= len(seen["calibration"]) <= 32
        assert seen["calibration"] != seen["validation"]

    def test_a_class_map_renumbers_a_stream_that_knows_its_names(self, shards, monkeypatch, tmp_path):
        def open_named(name, root):
            readers = open_readers(name, root)
            for reader in readers.values():
                reader.class_to_idx = {"x": 0, "y": 1, "z": 2}
            return readers

        open_readers = timm_sets.open_readers
        monkeypatch.setattr(timm_sets, "open_readers", open_named)
        (tmp_path / "order.txt").write_text("z\ny\nx\n")
        data = self.load((shards[0], str(tmp_path / "order.txt")))
        assert data.class_names == ("z", "y", "x")
        assert all(torch.equal(batch.labels, 2 - batch.indices % 3) for batch in data.test.batches(16))

    def test_labels_beyond_the_class_map_are_refused(self, shards, tmp_path):
        (tmp_path / "two.txt").write_text("a\nb\n")
        data = self.load((shards[0], str(tmp_path / "two.txt")))
        with pytest.raises(SurefootError, match="labels must be in 0 to 1, got 2 in the validation split of 'wds/shards'"):
            list(data.test.batches(16))

    def test_an_image_of_the_stream_that_cannot_be_used_is_named(self, shards):
        with pytest.raises(SurefootError, match="Cannot read image number 7 of validation of 'wds/shards': floating-point"):
            self.load(shards).test.rgb(Image.new("F", (4, 4)), 7)

    def test_shuffled_by_the_generator(self, shards):
        train = self.load(shards).train
        a, b, c = (torch.cat([x.indices for x in train.batches(16, shuffle=generator(s))]) for s in (1, 1, 2))
        assert a.equal(b)
        assert not a.equal(c)
        assert a.sort().values.equal(c.sort().values)
        assert all(len(batch) == 16 for batch in train.batches(16, drop_last=True))

    def test_training_and_auditing(self, shards, quicker):
        data = self.load(shards)
        model = sf.load_model("small-resnet", data=data, seed=0)
        done = sf.fit(model, sf.objectives.CrossEntropy(), data, epochs=1, batch_size=32, progress=False)
        assert sf.audit(done.predictor, data, progress=False).subject["images"] == 30

    def test_bad_options(self, shards):
        root, classes = shards
        with pytest.raises(SurefootError, match="do not say their classes: give a class map"):
            sf.load_data("wds/shards", root=root, image_size=32)
        with pytest.raises(SurefootError, match="image_size must be given"):
            sf.load_data("wds/shards", root=root, class_map=classes)
        with pytest.raises(SurefootError, match="fraction and max_images need labels known ahead"):
            self.load(shards, fraction=0.5)

    @pytest.mark.parametrize("shard", ["pipe:touch MARKER", "http://localhost:9/x.tar"])
    def test_a_shard_is_a_file(self, shards, shard, monkeypatch):
        """Names in `_info.json` are no commands, also where the root says nothing and they would stand alone."""
        root, classes = shards
        monkeypatch.chdir(root)
        info = json.loads(Path("_info.json").read_text())
        info["splits"]["train"]["filenames"] = [shard]
        Path("_info.json").write_text(json.dumps(info))
        for place in (root, ""):
            with pytest.raises(SurefootError, match=f"Data 'wds/shards' name a shard that is no file, '{shard}'"):
                list(self.load((place, classes)).train.batches(16))
        assert not Path("MARKER").exists()


@pytest.mark.parametrize(
    ("name", "package"), [("hfds/x", "datasets"), ("wds/x", "webdataset"), ("tfds/x", "tensorflow-datasets")]
)
def test_a_missing_reader_is_named(name, package, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr("surefoot.data.remote_sources.find_spec", lambda p: None if p.replace("_", "-") == package else real(p))
    with pytest.raises(SurefootError, match=f"needs the package '{package.replace('-', '_')}': pip install {package}"):
        sf.load_data(name, image_size=32)
