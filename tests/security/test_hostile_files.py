"""Files that claim more than there is: headers before data, sizes before memory, one line that names the file."""

import csv
import io
import json
import os
import resource
import struct
import time
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot import limits
from surefoot.auditing.number_names import check_audit
from surefoot.cli.gate import read_numbers
from surefoot.data.folders import load_labelled_folder
from surefoot.data.image_files import BadImage, read_image
from surefoot.errors import SurefootError, printable, shown
from surefoot.schemas import load_yaml, parse_value
from surefoot.studies.table_formats import as_text
from surefoot.training.recipe_files import read_recipe


def claims(path, name, shape, kind="<f8"):
    """An `.npz` whose header claims an array that is not there."""
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode() + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)


@pytest.mark.parametrize("name", ["logits", "images"])
def test_an_npz_that_claims_terabytes(tmp_path, name):
    claims(tmp_path / "x.npz", name, (3_700_000_000, 1000))
    load = sf.Predictions.load if name == "logits" else sf.load_data
    began = time.monotonic()
    with pytest.raises(SurefootError, match=r"The arrays of '.*x.npz' need 27,\d+.\d GiB of memory, and .* are free"):
        load(tmp_path / "x.npz")
    assert time.monotonic() - began < 5


def test_labels_of_a_billion(tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", images=np.zeros((2, 8, 8), np.uint8), labels=np.array([0, 10**9]))
    with pytest.raises(SurefootError, match="classes up to 1,000,000,000, .* raise SUREFOOT_MAX_CLASSES"):
        sf.load_data(tmp_path / "x.npz")
    monkeypatch.setenv("SUREFOOT_MAX_CLASSES", "many")
    with pytest.raises(SurefootError, match="SUREFOOT_MAX_CLASSES must be a whole number, got 'many'"):
        limits.limit("SUREFOOT_MAX_CLASSES")
    monkeypatch.setenv("SUREFOOT_MAX_CLASSES", "7")
    assert limits.limit("SUREFOOT_MAX_CLASSES") == 7


@pytest.mark.parametrize("names", [np.array("all"), np.array(["a", "b\0c"]), np.array(["a", "\x1b[31m"]), np.array(["", "b"])])
def test_class_names_that_are_none(tmp_path, names):
    np.savez(tmp_path / "x.npz", images=np.zeros((2, 8, 8), np.uint8), labels=np.array([0, 1]), class_names=names)
    with pytest.raises(SurefootError, match="class_names must be"):
        sf.load_data(tmp_path / "x.npz")


def test_a_csv_of_many_columns_is_read_in_order_of_their_number(tmp_path, monkeypatch):
    count = 20_000
    with open(tmp_path / "x.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["label", *(f"logit_{k}" for k in reversed(range(count)))])
        lines.writerow([3, *reversed(range(count))])
    began = time.monotonic()
    read = sf.Predictions.load(tmp_path / "x.csv")
    assert read.logits[0].tolist() == list(range(count))
    assert time.monotonic() - began < 10  # squares of the number of columns took 8 s on an idle machine
    monkeypatch.setenv("SUREFOOT_MAX_CLASSES", "19999")
    with pytest.raises(SurefootError, match="has classes: 20,000, and more than 19,999 are taken for a mistake"):
        sf.Predictions.load(tmp_path / "x.csv")


def test_memory_of_very_many_classes_is_bounded(monkeypatch):
    """The sums of classes, bins and draws go a few draws at a time, to the same numbers."""
    from surefoot.calibration import scoring

    draws = torch.Generator().manual_seed(0)
    given = sf.Predictions.from_logits(torch.randn(60, 30, generator=draws), torch.randint(30, (60,), generator=draws))
    whole = scoring.scores(given, intervals=50)
    sizes, real = [], scoring.ClassSums.of.__func__

    def watched(cls, matrix, weights, *more):
        sizes.append(matrix.shape[0] * len(weights))
        return real(cls, matrix, weights, *more)

    monkeypatch.setattr(scoring, "CLASS_SUMS", 3000)
    monkeypatch.setattr(scoring.ClassSums, "of", classmethod(watched))
    blocks = scoring.scores(given, intervals=50)
    assert len(sizes) > 10
    assert max(sizes) <= 3000
    for name in ("classwise_ece", "brier_reliability"):
        one, two = getattr(whole, name), getattr(blocks, name)
        assert (one.low, one.high) == pytest.approx((two.low, two.high), abs=1e-12)


def test_pictures_that_are_none_or_too_large(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(BadImage, match=r"pipe.png': it is no file; remove it"):
        read_image(tmp_path / "pipe.png")
    large = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(large, "PNG")
    (tmp_path / "large.png").write_bytes(large.getvalue())
    began = time.monotonic()
    with pytest.raises(BadImage, match=r"large.png': .*400,?000,?000.* raise SUREFOOT_MAX_PIXELS"):
        read_image(tmp_path / "large.png")
    assert time.monotonic() - began < 2
    Image.new("RGB", (40, 30)).save(tmp_path / "small.png")
    monkeypatch.setenv("SUREFOOT_MAX_PIXELS", "1199")
    with pytest.raises(BadImage, match="1,200"):
        read_image(tmp_path / "small.png")
    monkeypatch.setenv("SUREFOOT_MAX_PIXELS", "1200")
    assert read_image(tmp_path / "small.png").size == (40, 30)


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{k}: &a{k} [{','.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 11))


def test_yaml_that_grows(tmp_path):
    (tmp_path / "r.yaml").write_text(BOMB + "objective: *a10\n")
    assert len(BOMB) < 1000
    with pytest.raises(SurefootError, match="Recipe '.*r.yaml' is not valid YAML: it has more than 100,000 parts") as error:
        read_recipe(tmp_path / "r.yaml")
    assert len(str(error.value)) < 300
    with pytest.raises(ValueError, match="more than 100,000 parts"):
        load_yaml("&a [*a]")
    with pytest.raises(SurefootError, match="is not a value"):
        parse_value("[" * 5000)
    assert load_yaml("a: &x [1, 2]\nb: *x") == {"a": [1, 2], "b": [1, 2]}
    assert len(shown({"a": ["x" * 10**6] * 10**6})) < 3000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"accuracy": {"value": 1.5, "low": 0.9, "high": 1.6}}, "calibration.accuracy must be in 0 to 1, got 1.5"),
        ({"ece": {"value": -1, "low": -1, "high": -1}}, "calibration.ece must be in 0 to 1, got -1"),
        ({"nll": {"value": -0.5, "low": None, "high": None}}, "calibration.nll must be at least 0, got -0.5"),
        ({"ece": {"value": "0.01", "low": 0, "high": 0}}, "calibration.ece must be in 0 to 1, got '0.01'"),
        ({"ece": {"value": 0.1, "low": 0.9, "high": 0.2}}, "the interval of calibration.ece ends before it begins"),
    ],
)
def test_a_gate_refuses_numbers_that_cannot_be(tmp_path, change, said):
    subject = {"name": "a", "data": {}, "split": "test", "classes": ["0", "1"]}
    audit = {"schema": 2, "subject": subject, "calibration": change}
    with pytest.raises(SurefootError, match=said):
        check_audit("audit.json", audit)
    (tmp_path / "audit.json").write_text(json.dumps(audit).replace("1.5", "Infinity"))
    with pytest.raises(SurefootError):
        read_numbers(tmp_path)


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"schema": 2}', '{"schema": 2, "subject": 3}', '{"schema": 2, "subject": {}}', "["]
)
def test_an_audit_that_is_none(surefoot, here, text):
    (here / "audit.json").write_text(text)
    for command in (["gate", "audit.json", "--rule", "ece < 1"], ["compare", "audit.json", "audit.json"]):
        found = surefoot(*command)
        assert (found.code, found.err.count("\n")) == (2, 1), found.err
        assert "'audit.json'" in found.err


@pytest.mark.parametrize("name", ["../b.png", "/etc/passwd", "x/../../b.png"])
def test_labels_name_files_of_their_folder(tmp_path, name):
    (tmp_path / "d").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "b.png")
    (tmp_path / "d" / "labels.csv").write_text(f"file,label\n{name},a\n")
    with pytest.raises(SurefootError, match="must name files of its folder, got"):
        load_labelled_folder(tmp_path / "d", tmp_path / "d" / "labels.csv")


def test_names_are_printed_and_not_obeyed():
    assert printable("a\x1b[31mb\x07\nc é") == "a\\x1b[31mb\\x07\nc é"
    assert printable("81.5\N{NO-BREAK SPACE}%") == "81.5 %"
    assert [as_text(name) for name in ("=cmd|' /C calc'!A0", "+1", "@x", "plain", "")] == [
        *("'=cmd|' /C calc'!A0", "'+1", "'@x", "plain", "")
    ]


def test_a_full_disk_is_a_line(tmp_path):
    """A file may not grow beyond a size here, as a disk that is full."""
    data = sf.load_data("digits", fraction=0.1, max_images=40)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(SurefootError, match="contrast.npy' cannot be written: File too large"):
            sf.corruptions.write(data, tmp_path / "c", names=["contrast"], progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["copies.json"]
