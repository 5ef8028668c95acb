"""An audit that is interrupted goes on, several processes find what one would, and a picture is decoded once a pass."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import surefoot as sf
from forked import child_of_this
from surefoot.auditing import passes
from surefoot.auditing.depths import DEPTHS, Depth
from surefoot.auditing.plan import chunk_size, groups_of, nested_chunks
from surefoot.auditing.store import restore
from surefoot.auditing.table import read_part
from surefoot.cli.main import run as run_command
from surefoot.data.collection import files_of
from surefoot.data.streaming import Pictures
from surefoot.errors import SurefootError
from surefoot.plain import plain
from surefoot.types import Estimate


def without_times(folder):
    found = json.loads((folder / "audit.json").read_text())
    found["subject"].pop("created")
    found["subject"].pop("command", None)  # names another output
    found["subject"].pop("table")  # the plan knows how fast the machine was
    return found, (folder / "audit-data" / "points.json").read_text()


def rows_of(folder):
    parts = [pd.read_parquet(part) for part in sorted((folder / "audit-data" / "table").glob("*.parquet"))]
    return pd.concat(parts).drop(columns="logits").astype({"condition": str}).reset_index(drop=True)


def test_interrupted_anywhere_it_gives_the_same_audit(run, few, small, tmp_path, monkeypatch):
    sf.audit(run.predictor, few, depth=small, output=tmp_path / "whole", progress=False)
    done, keep = [], passes.keep

    def interrupted(store, task, found):
        if len(done) in (0, 4, 9):
            done.append("interrupted")
            raise KeyboardInterrupt
        done.append(task)
        keep(store, task, found)

    monkeypatch.setattr(passes, "keep", interrupted)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            sf.audit(run.predictor, few, depth=small, output=tmp_path / "again", progress=False)
        assert not (tmp_path / "again" / "audit.json").exists()
    sf.audit(run.predictor, few, depth=small, output=tmp_path / "again", progress=False)
    tasks = [task.number for task in done if task != "interrupted"]
    assert len(tasks) == len(set(tasks))  # nothing was measured twice
    assert done.count("interrupted") == 3
    assert without_times(tmp_path / "again") == without_times(tmp_path / "whole")
    pd.testing.assert_frame_equal(rows_of(tmp_path / "again"), rows_of(tmp_path / "whole"))
    assert sorted(path.name for path in (tmp_path / "again" / "audit-data").iterdir()) == ["plan.json", "points.json", "table"]


def test_an_unfinished_audit_with_other_options_is_refused(run, few, small, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    keep = passes.keep
    monkeypatch.setattr(passes, "keep", stop)
    with pytest.raises(KeyboardInterrupt):
        sf.audit(run.predictor, few, depth=small, output=tmp_path, progress=False)
    monkeypatch.setattr(passes, "keep", keep)
    with pytest.raises(SurefootError, match=r"unfinished audit with another seed \(0 there, 1 now\)"):
        sf.audit(run.predictor, few, depth=small, seed=1, output=tmp_path, progress=False)
    other = sf.load_model("tiny-resnet", data=few, seed=1)
    with pytest.raises(SurefootError, match="another weights"):
        sf.audit(other, few, depth=small, output=tmp_path, progress=False)
    assert sf.audit(run.predictor, few, depth=small, seed=1, output=tmp_path, overwrite=True, progress=False)
    assert sf.audit(run.predictor, few, depth=small, output=tmp_path, progress=False)  # a finished one is replaced


def test_the_plan_is_there_before_the_first_part(run, few, small, tmp_path, monkeypatch):
    seen, keep = [], passes.keep

    def look(store, task, found):
        seen.append((tmp_path / "audit-data" / "plan.json").is_file())
        keep(store, task, found)

    monkeypatch.setattr(passes, "keep", look)
    sf.audit(run.predictor, few, depth=small, output=tmp_path, progress=False)
    assert seen
    assert all(seen)
    plan = json.loads((tmp_path / "audit-data" / "plan.json").read_text())
    assert plan["about"]["measure"]["corruptions"]["severities"] == [1, 4]
    assert {condition for task in plan["tasks"] for condition in task["conditions"]} >= {"clean", "contrast/4", "fgsm"}


def test_another_batch_size_changes_no_draw(run, few, small):
    small = Depth("small", {"corruptions": small.measure["corruptions"]})
    one, two = (sf.audit(run.predictor, few, depth=small, batch_size=size, progress=False) for size in (32, 50))
    first, second = (each.table().set_index(["condition", "index"]).sort_index() for each in (one, two))
    assert first.index.equals(second.index)
    for name in ("confidence", "nll", "margin"):
        clean = [each.loc["clean", name].to_numpy() for each in (first, second)]
        assert np.allclose(*clean, atol=1e-4)
        noisy = [each.loc["gaussian_noise/4", name].to_numpy() for each in (first, second)]
        assert np.allclose(*noisy, atol=1e-3)


COMMAND = ["audit", "--split", "test", "--max-images", "40", "--batch-size", "40", "--time", "1h", "--quiet"]


@pytest.fixture(scope="module")
def in_one_go(run, once):
    """A quick audit of 40 images by the command."""
    return once("in-one-go", lambda folder: go_on(run, folder))


def go_on(run, folder):
    """The command in this process."""
    with pytest.raises(SystemExit) as stop:
        run_command([*COMMAND, str(run.folder), "--output", str(folder)])
    assert not stop.value.code


def call(run, folder, *more, wait=True):
    command = [sys.executable, "-m", "surefoot", *COMMAND, str(run.folder), "--output", str(folder), *more]
    started = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True)
    if wait:
        assert started.wait() == 0
    return started


def test_two_processes_find_what_one_finds(run, in_one_go, tmp_path):
    call(run, tmp_path, "--processes", "2")
    assert without_times(tmp_path) == without_times(in_one_go)
    pd.testing.assert_frame_equal(rows_of(tmp_path), rows_of(in_one_go))


def kill_at(run, folder, moment):
    """Start an audit and kill it with all of its processes after so many seconds; whether it was still at work."""
    started = call(run, folder, wait=False)
    time.sleep(moment)
    alive = started.poll() is None
    if alive:
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    for part in (folder / "audit-data" / "table").glob("part-*.parquet"):
        read_part(part)  # whole, or not there
    return alive


def test_killed_it_goes_on(run, in_one_go, tmp_path):
    table = tmp_path / "a" / "audit-data" / "table"
    with child_of_this(lambda: go_on(run, tmp_path / "a"), tmp_path / "said") as child:
        while len(list(table.glob("part-*.parquet"))) < 3:
            assert child.poll() is None, "it ended before it was killed"
            time.sleep(0.01)
        assert child.send(signal.SIGKILL) == -signal.SIGKILL
    assert not (tmp_path / "a" / "audit.json").exists()
    go_on(run, tmp_path / "a")
    assert without_times(tmp_path / "a") == without_times(in_one_go)


@pytest.mark.stress
def test_thirty_kills_at_random_moments(run, in_one_go, tmp_path):
    """Whenever it is killed, what is there can be read, and the audit goes on to the same end."""
    moments = np.random.default_rng(0).uniform(1.0, 9.0, 30)
    killed = 0
    for number, moment in enumerate(moments):
        folder = tmp_path / str(number // 3)  # three kills of each audit
        killed += kill_at(run, folder, moment)
    for folder in sorted(tmp_path.iterdir()):
        call(run, folder)
        assert without_times(folder) == without_times(in_one_go)
        pd.testing.assert_frame_equal(rows_of(folder), rows_of(in_one_go))
    print(f"{killed} of 30 were at work when they were killed")
    assert killed >= 20


@pytest.fixture
def streamed(tmp_path):
    """A folder of pictures that does not fit the memory allowed, read by this process."""
    draws = np.random.default_rng(0)
    for split, count in (("train", 8), ("test", 12)):
        for label in ("a", "b", "c"):
            folder = tmp_path / "data" / split / label
            folder.mkdir(parents=True)
            for number in range(count):
                Image.fromarray(draws.integers(0, 256, (32, 32, 3), np.uint8)).save(folder / f"{number}.png")
    return sf.load_data(tmp_path / "data", memory_gib=1e-6, workers=0)


@pytest.mark.parametrize(("depth", "most"), [("quick", 5), ("full", 7)])
def test_how_often_a_picture_is_read(streamed, monkeypatch, depth, most):
    reads, read = Counter(), Pictures.__getitem__

    def counted(self, index):
        reads[files_of(self.source)[index]] += 1
        return read(self, index)

    monkeypatch.setattr(Pictures, "__getitem__", counted)
    chosen = DEPTHS[depth].having(corruptions={"names": ("gaussian_noise", "fog", "contrast"), "severities": (1, 5)})
    if depth == "full":
        fewer = {"noise": {"draws": 2}, "noise_uniform": {"draws": 2}}
        chosen = chosen.having(**fewer, attacks={"names": ("fgsm", "pgd-weak")}, autoattack=None, certificates=None)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(900, 3))
    sf.audit(sf.adapt(net, 0.5, 0.5, 32), streamed, depth=chosen, batch_size=16, progress=False)
    tested = {path: count for path, count in reads.items() if "test" in path.parts}
    assert len(tested) == 36
    assert max(tested.values()) <= most


def test_estimates_come_back_from_plain_values():
    given = {"a": Estimate(0.5, 0.1, float("nan")), "b": [Estimate(1.0, 0.5, 2.0), {"value": 3}], "c": "text"}
    back = restore(json.loads(json.dumps(plain(given))))
    assert (back["a"].low, back["b"][0].high, back["b"][1], back["c"]) == (0.1, 2.0, {"value": 3}, "text")
    assert back["a"].high != back["a"].high  # NaN


def test_several_processes_need_a_folder(run, digits, small, monkeypatch):
    monkeypatch.setattr(passes, "share_of_work", lambda: (0, 2))
    with pytest.raises(SurefootError, match="needs an output folder"):
        sf.audit(run.predictor, digits, depth=small, progress=False)


def test_chunks_are_inside_a_subset_or_outside():
    chunks = nested_chunks([range(0, 10, 2), [0, 4], range(10)], 3, streamed=False)
    assert chunks == [[0, 4], [2, 6, 8], [1, 3, 5], [7, 9]]
    assert nested_chunks([range(0, 10, 2), [0, 4]], 3, streamed=True) == [[0, 2, 4], [6, 8]]
    assert nested_chunks([], 3, streamed=True) == []


def test_parts_are_of_about_two_minutes():
    names = [str(number) for number in range(45)]
    assert [len(group) for group in groups_of(names, 100, 0.001)] == [20, 20, 5]
    assert [len(group) for group in groups_of(names, 256, 0.05)] == [9] * 5
    assert len(groups_of(names, 256, 10.0)) == 45
    assert chunk_size(256, 3 * 224 * 224) == 256
    assert chunk_size(256, 3 * 32 * 32) == 2048
