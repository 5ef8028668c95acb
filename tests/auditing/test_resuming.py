"""An audit that is interrupted goes on, and several processes find what one would."""

import json
import os
import subprocess
import sys
import time

import pytest

import surefoot as sf
from surefoot.auditing import steps
from surefoot.auditing.records import Record, Workbook, restore
from surefoot.errors import SurefootError
from surefoot.plain import plain
from surefoot.types import Estimate


def without_times(folder):
    found = json.loads((folder / "audit.json").read_text())
    found["subject"].pop("created")
    found["subject"].pop("command", None)  # names another output
    return found, (folder / "audit-data" / "points.json").read_text()


def test_interrupted_anywhere_it_gives_the_same_audit(run, digits, small, tmp_path, monkeypatch):
    sf.audit(run.predictor, digits, depth=small, output=tmp_path / "whole", progress=False)
    done, write = [], Workbook.write

    def interrupted(self, name, record):
        if len(done) in (2, 7, 13):
            done.append("interrupted")
            raise KeyboardInterrupt
        done.append(name)
        write(self, name, record)

    monkeypatch.setattr(Workbook, "write", interrupted)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            sf.audit(run.predictor, digits, depth=small, output=tmp_path / "again", progress=False)
        assert not (tmp_path / "again" / "audit.json").exists()
    sf.audit(run.predictor, digits, depth=small, output=tmp_path / "again", progress=False)
    names = [name for name in done if name != "interrupted"]
    assert len(names) == len(set(names))  # nothing was measured twice
    assert done.count("interrupted") == 3
    assert without_times(tmp_path / "again") == without_times(tmp_path / "whole")
    assert sorted(path.name for path in (tmp_path / "again" / "audit-data").iterdir()) == [
        "draws.safetensors", "points.json", "predictions.safetensors"
    ]  # fmt: skip


def test_other_weights_are_not_taken_for_finished_work(run, digits, small, tmp_path, monkeypatch):
    """The folder of the work is named after weights, images and settings."""
    asked = []
    monkeypatch.setattr(Workbook, "close", lambda self: asked.append(self.folder))
    sf.audit(run.predictor, digits, depth=small, output=tmp_path, progress=False)
    other = sf.load_model("small-resnet", data=digits, seed=1)
    sf.audit(other, digits, depth=small, output=tmp_path, progress=False)
    sf.audit(other, digits, depth=small, seed=1, output=tmp_path, progress=False)
    assert len(set(asked)) == 3


COMMAND = ["audit", "--split", "test", "--max-images", "40", "--batch-size", "40", "--quiet"]


@pytest.fixture(scope="module")
def in_one_go(run, tmp_path_factory):
    """A quick audit of 40 images by the command, in a process of its own."""
    folder = tmp_path_factory.mktemp("one")
    call(run, folder)
    return without_times(folder)


def call(run, folder, *more, wait=True):
    command = [sys.executable, "-m", "surefoot", *COMMAND, str(run.folder), "--output", str(folder), *more]
    started = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if wait:
        assert started.wait() == 0
    return started


def test_two_processes_find_what_one_finds(run, in_one_go, tmp_path):
    call(run, tmp_path, "--processes", "2")
    assert without_times(tmp_path) == in_one_go


def test_killed_it_goes_on(run, in_one_go, tmp_path):
    started = call(run, tmp_path, wait=False)
    work = tmp_path / "audit-data" / "work"
    while len(list(work.glob("*/*.safetensors"))) < 20:
        assert started.poll() is None, "it ended before it was killed"
        time.sleep(0.02)
    started.kill()
    started.wait()
    assert not (tmp_path / "audit.json").exists()
    call(run, tmp_path)
    assert without_times(tmp_path) == in_one_go


def test_estimates_come_back_from_plain_values():
    given = {"a": Estimate(0.5, 0.1, float("nan")), "b": [Estimate(1.0, 0.5, 2.0), {"value": 3}], "c": "text"}
    back = restore(json.loads(json.dumps(plain(given))))
    assert (back["a"].low, back["b"][0].high, back["b"][1], back["c"]) == (0.1, 2.0, {"value": 3}, "text")
    assert back["a"].high != back["a"].high  # NaN


def test_several_processes_share_the_steps(tmp_path, monkeypatch):
    done, waited = [], []
    monkeypatch.setattr(steps, "share_of_work", lambda: (1, 2))
    monkeypatch.setattr(Workbook, "wait", lambda _, name: waited.append(name))
    work = [steps.Step(name, lambda name=name: done.append(name) or Record({}), 3.0) for name in "abcde"]
    book = Workbook(tmp_path)
    assert steps.remaining(work, book) == 7.5
    steps.run_steps(work, book, seed=0, title="", progress=False)
    assert (done, waited) == (["b", "d"], ["a", "b", "c", "d", "e"])
    with pytest.raises(SurefootError, match="needs an output folder"):
        steps.run_steps(work, Workbook(None), seed=0, title="", progress=False)


def test_a_book_without_a_folder_keeps_records_in_memory():
    book = Workbook(None)
    assert book.read("a") is None
    book.write("a", Record({"x": 1}))
    assert book.read("a").values == {"x": 1}
