"""A run and audit folder has one writer, its weights and state are of its recipe, and what failed leaves nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import yaml

import surefoot as sf
from surefoot.auditing.predictions import audit_predictions
from surefoot.errors import SurefootError
from surefoot.files import only_writer, part_of
from surefoot.training import loop
from surefoot.training.checkpoints import state_files
from surefoot.training.runs import begun_copy, copy_folder, key_of

HOLD = "import sys, time; from surefoot.files import only_writer\n"
HOLD += "with only_writer(sys.argv[1]): print('held', flush=True); time.sleep(600)"


@contextmanager
def held(folder):
    """Another process writes to a folder."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        yield holder
        holder.kill()


@pytest.fixture(scope="module")
def few():
    return sf.load_data("digits", fraction=0.1, max_images=40)


def fit(data, output, **options):
    model = sf.load_model("tiny-resnet", data=data, seed=0)
    options = {"epochs": 2, "progress": False, **options}
    return sf.fit(model, options.pop("objective", "cross-entropy"), data, output=output, **options)


def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path, few):
    folder = tmp_path / "a" / "r"
    with held(folder) as holder:
        for write in (
            lambda: fit(few, folder),
            lambda: audit_predictions(sf.Predictions.from_logits([[0.0, 1.0]] * 4, [0, 1, 1, 1]), output=folder),
        ):
            with pytest.raises(SurefootError, match="Another process is writing to '.*r': wait until it has ended"):
                write()
        holder.send_signal(signal.SIGKILL)  # the lock goes with its process
        holder.wait()
    with only_writer(folder):
        assert [path.name for path in folder.iterdir()] == [".lock"]
    assert list(folder.iterdir()) == []


def test_an_audit_waits_for_no_training(tmp_path, few, run):
    with held(tmp_path / "r"), pytest.raises(SurefootError, match="Another process is writing to"):
        sf.audit(run.predictor, few, output=tmp_path / "r", progress=False)


def test_folders_that_stayed_empty_are_removed(tmp_path):
    def fail():
        with only_writer(tmp_path / "a" / "b"):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(SurefootError, match="output must be a folder, and '.*file' is a file"),
        only_writer(tmp_path / "file/x"),
    ):
        pass


def test_a_training_that_fails_at_once_leaves_nothing(tmp_path, few):
    with pytest.raises(SurefootError, match="must be finite|not finite"):
        fit(few, tmp_path / "runs" / "r", learning_rate=1e30)
    assert list(tmp_path.iterdir()) == []


def test_weights_of_another_recipe_are_refused(tmp_path, few):
    done = fit(few, tmp_path / "r", epochs=1)
    path = tmp_path / "r" / "recipe.yaml"
    recipe = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**recipe, "objective": {"name": "focal", "gamma": 2.0}}))
    with pytest.raises(SurefootError, match=r"weights in '.*' are not of its recipe.yaml"):
        sf.load_run(tmp_path / "r")
    path.write_text(yaml.safe_dump({**recipe, "data": {**recipe["data"], "root": "elsewhere"}}))  # a run may move
    assert sf.load_run(tmp_path / "r").class_names == done.class_names
    assert key_of(recipe) == key_of(done.recipe) != key_of({**recipe, "seed": 1})


def stopped(few, folder, monkeypatch, **options):
    """A run with one finished epoch."""
    real, calls = loop.validate, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(loop, "validate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(few, folder, **options)
    monkeypatch.setattr(loop, "validate", real)
    assert len(state_files(folder)) == 1


def test_a_state_of_another_recipe_is_not_gone_on_from(tmp_path, few, monkeypatch, caplog):
    """As a kill in the middle of --overwrite leaves it."""
    stopped(few, tmp_path / "r", monkeypatch, objective="focal")
    (tmp_path / "r" / "recipe.yaml").unlink()
    again = fit(few, tmp_path / "r")
    assert "is of another recipe and is not gone on from" in caplog.text
    assert [epoch["epoch"] for epoch in again.history] == [1, 2]
    fresh = fit(few, tmp_path / "fresh")
    assert again.model.state_dict().keys() == fresh.model.state_dict().keys()
    assert all((value == fresh.model.state_dict()[key]).all() for key, value in again.model.state_dict().items())


@pytest.mark.parametrize("broken", [None, b"half"])
def test_best_weights_that_are_gone_block_only_who_needs_them(tmp_path, few, monkeypatch, caplog, broken):
    for keep in ("last", "best"):
        folder = tmp_path / keep
        stopped(few, folder, monkeypatch, keep=keep)
        (folder / "best.safetensors").unlink() if broken is None else (folder / "best.safetensors").write_bytes(broken)
    assert len(fit(few, tmp_path / "last", keep="last").history) == 2
    assert "goes on, since it keeps the last ones" in caplog.text
    with pytest.raises(SurefootError, match=r"best weights.*begin anew with overwrite"):
        fit(few, tmp_path / "best", keep="best")


def test_a_copy_that_was_not_finished_is_begun_anew(tmp_path, run):
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in ("calibration.safetensors", "recipe.yaml", part_of(folder / "model.safetensors").name):
        (folder / name).write_text("half")
    assert begun_copy(folder) == set(folder.iterdir())
    assert copy_folder(run, folder) == folder
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(SurefootError, match="must be a new or empty folder"):
        copy_folder(run, folder)


def test_calibrate_goes_on_after_a_kill(surefoot, here, run, monkeypatch):
    shutil.copytree(run.folder, here / "r")
    with monkeypatch.context() as stop:
        stop.setattr("surefoot.training.runs.finish_run", lambda _: os.kill(os.getpid(), signal.SIGTERM))
        assert surefoot("calibrate", "r", "--output", "c", "--quiet").code == 143
    assert (here / "c" / "calibration.safetensors").is_file()
    assert not (here / "c" / "model.safetensors").exists()
    found = surefoot("calibrate", "r", "--output", "c", "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["folder"] == "c"
    assert ".lock" not in os.listdir("c")
    assert "new or empty" in surefoot("calibrate", "r", "--output", "c").err


def test_a_dead_export_is_cleared_away(tmp_path, run, digits):
    """What a killed process left half-written goes when the same file is written again; that of a living one stays."""
    path = tmp_path / "model.pt2"
    with subprocess.Popen([sys.executable, "-c", "pass"]) as dead:
        dead.wait()
    own = part_of(path)
    left = own.with_name(own.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-"))
    left.write_text("half")
    own.write_text("still being written")
    sf.export(run.predictor, next(iter(digits.test.batches(8))).images, path, format="torch")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([own.name, "model.pt2", "model.pt2.json"])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("model.safetensors", lambda whole: whole[:100]),
        ("model.safetensors", lambda whole: b""),
        ("model.safetensors", lambda whole: whole.replace(b'\\"num_classes\\": 10', b'\\"num_classes\\": -1')),
        ("history.jsonl", lambda whole: whole[:-9]),
        ("recipe.yaml", lambda whole: b"\xff\xfe" + whole),
        ("recipe.yaml", lambda whole: b"- a list"),
    ],
)
def test_a_run_that_was_tampered_with_is_a_line(tmp_path, run, name, change):
    shutil.copytree(run.folder, tmp_path / "r")
    path = tmp_path / "r" / name
    whole = path.read_bytes()
    path.write_bytes(change(whole))
    assert path.read_bytes() != whole
    with pytest.raises(SurefootError, match=name):
        sf.load_run(tmp_path / "r")
