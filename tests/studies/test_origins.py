"""Published copies in a study: read, named by what they hold, never mixed with generated pictures."""

import json
import shutil

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from tiny import TINY, cells

import surefoot as sf
from surefoot.corruptions.published import open_copies
from surefoot.errors import SurefootError
from surefoot.measurements.context import Context
from surefoot.measurements.corruptions import Corruptions
from surefoot.studies.origins import origin_of, with_origins
from surefoot.studies.study_files import read_study

NAMES = ("fog", "contrast")
DATA = {"digits": {"name": "digits", "fraction": 0.2}}  # copies are of all test images


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Two corruptions as CIFAR-C has them: those of the benchmark's names are grey, so that a generated one would tell."""
    test = sf.load_data("digits").test
    folder = tmp_path_factory.mktemp("copies") / "Digits-C"
    folder.mkdir()
    for name in NAMES:
        np.save(folder / f"{name}.npy", np.full((5 * len(test), 32, 32, 3), 128, dtype=np.uint8))
    np.save(folder / "labels.npy", np.tile(test.labels.numpy(), 5))
    return folder


@pytest.fixture(scope="module")
def strange(copies):
    """A folder with one name that nobody knows: the pictures as they are."""
    test = sf.load_data("digits").test
    folder = copies.parent / "Digits-Strange"
    folder.mkdir()
    np.save(folder / "near_focus.npy", np.tile(test.images.permute(0, 2, 3, 1).numpy(), (5, 1, 1, 1)))
    shutil.copy(copies / "labels.npy", folder)
    return folder


@pytest.fixture
def study(here):
    measure = {"clean": {}, "corruptions": {"names": list(NAMES), "severities": [3]}}
    content = {**TINY, "methods": {"cross-entropy": "cross-entropy"}, "data": DATA, "measure": measure}
    content["table"] = {"columns": ["clean.accuracy", "corruptions.accuracy"]}
    (here / "tiny.yaml").write_text(yaml.safe_dump(content))
    return here / "tiny.yaml"


def measurements(here):
    (path,) = (here / "out" / "results" / "cells").glob("*.json")
    return list(json.loads(path.read_text())["measurements"].values())


def test_copies_are_read_and_the_cell_names_them(surefoot, study, here, copies, strange):
    """Grey pictures all look the same: the accuracy is the share of one class. What nobody knows is a condition of its own."""
    flags = ("--results", "out/results", "--engine", "here")
    plain = surefoot("study", "run", study, *flags)
    assert plain.code == 0, plain.err
    done = surefoot("study", "run", study, *flags, "--corrupted", copies, "--corrupted", strange)
    assert done.code == 0, done.err
    generated, read, unknown = [each for each in measurements(here) if each["measurement"] == "corruptions"]
    assert generated["options"]["origin"] == "generated"
    assert read["options"]["origin"] == origin_of(open_copies(copies))
    assert read["options"]["origin"].startswith("Digits-C (")
    labels = sf.load_data("digits").test.labels
    shares = labels.bincount().double() / len(labels)
    assert min(abs(float(share) - read["metrics"]["accuracy"]) for share in shares) < 1e-6
    (clean,) = [each for each in measurements(here) if each["measurement"] == "clean"]
    assert unknown["options"]["names"] == ["near_focus"]
    assert unknown["metrics"]["accuracy"] == pytest.approx(clean["metrics"]["accuracy"])
    assert "digits-strange" in done.out
    shown = surefoot("study", "show", study, "--results", "out/results")
    assert "Digits-C" not in shown.out  # the generated ones are still there, under their own name
    shown = surefoot("study", "show", study, "--results", "out/results", "--corrupted", copies)
    assert "Digits-C (" in shown.out


def test_nothing_is_generated_in_place_of_what_is_missing(surefoot, study, strange, copies):
    done = surefoot("study", "run", study, "--corrupted", strange, "--engine", "here")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "lacks corruptions that corruptions asks for (fog, contrast): give the folder that has them too" in done.err
    refused = surefoot("study", "run", study, "--corrupted", copies, "--frost", strange)
    assert "--frost is for corruptions that are generated, and --corrupted reads them." in refused.err


def test_an_origin_is_what_a_folder_holds(copies, tmp_path):
    """Another path is the same origin, other pictures are another; a cell's measurement is named by it."""
    moved = shutil.copytree(copies, tmp_path / "elsewhere" / "Digits-C")
    assert origin_of(open_copies(moved)) == origin_of(open_copies(copies))
    np.save(moved / "fog.npy", np.zeros((5 * 540, 32, 32, 3), dtype=np.uint8))
    assert origin_of(open_copies(moved)) != origin_of(open_copies(copies))
    measure = {"corruptions": {"names": list(NAMES)}}
    plain = cells(tmp_path, measure=measure)[0].measure_name("corruptions")
    said, read = (
        cells(tmp_path, measure={"corruptions": {**measure["corruptions"], "origin": origin}})[0].measure_name("corruptions")
        for origin in ("generated", origin_of(open_copies(copies)))
    )
    assert plain == said != read


def test_folders_of_images(tmp_path):
    """ImageNet-C's layout has an origin too, and names that we do not know."""
    for name in ("fog", "flash"):
        (tmp_path / "Set-C" / name / "1" / "a").mkdir(parents=True)
        Image.new("RGB", (8, 8), (name == "fog" and "red") or "blue").save(tmp_path / "Set-C" / name / "1" / "a" / "0.png")
    study = read_study("macs-table1", "smoke", {"measure": {"clean": {}, "corruptions": {"names": ["fog"]}}})
    changed, origins = with_origins("macs-table1", study, [tmp_path / "Set-C"], None)
    (origin,) = origins
    assert changed.measure["corruptions"]["origin"] == origin
    assert changed.measure["set-c"]["names"] == ["flash"]
    assert changed.table.columns[-1] == "set-c.accuracy"


def test_frost_is_named(surefoot, study, here, tmp_path):
    """Black photographs only darken; the cell says that they were used."""
    folder = tmp_path / "photographs"
    folder.mkdir()
    Image.new("RGB", (64, 64)).save(folder / "1.png")
    content = yaml.safe_load(study.read_text())
    content["measure"]["corruptions"]["names"] = ["frost"]
    study.write_text(yaml.safe_dump(content))
    flags = ("--results", "out/results", "--engine", "here")
    for own in ((), ("--frost", folder)):
        done = surefoot("study", "run", study, *flags, *own)
        assert done.code == 0, done.err
    drawn, given = [each for each in measurements(here) if each["measurement"] == "corruptions"]
    assert given["options"]["origin"].startswith("generated, frost of photographs (")
    assert given["metrics"] != drawn["metrics"]


def test_for_corruptions_only(copies):
    study = read_study("macs-table3", "smoke")
    with pytest.raises(SurefootError, match="are for corruptions, and study 'macs-table3' measures none"):
        with_origins("macs-table3", study, [copies], None)


def test_what_copies_do_not_have_is_refused_where_it_would_be_generated(copies):
    """Also in a worker: a severity between two, a name that is gone, or a folder that nobody gave."""
    opened = open_copies(copies)
    context = Context(torch.nn.Identity(), None, None, torch.device("cpu"), published={"C": opened})
    assert len(Corruptions(NAMES, [1, 5], origin="C").conditions(context)) == 4
    with pytest.raises(SurefootError, match="severities must be among 1, 2, 3, 4 and 5 for corruptions on disk"):
        Corruptions(NAMES, [2.5], origin="C").conditions(context)
    with pytest.raises(SurefootError, match="Unknown corruption in '.*' 'snow'"):
        Corruptions(["snow"], origin="C").conditions(context)
    with pytest.raises(SurefootError, match="The corrupted copies 'D' are not at hand: give their folder"):
        Corruptions(NAMES, origin="D").conditions(context)
