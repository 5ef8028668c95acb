"""Values that were once taken, or once ended in an exception of Python's: each is a line, and leaves nothing behind."""

import shutil

import pytest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "--seed", "-1"], "--seed"),
        (["train", "--set", "seed=-1"], "seed must be a whole number from 0 to 9223372036854775807, got -1"),
        (["train", "--seed", "9" * 26], "--seed must be below 10^18"),
        (["train", "--image-size", "1"], "image_size must be at least 2, got 1"),
        (["train", "--image-size", "999999"], "raise SUREFOOT_MAX_PIXELS"),
        (["train", "--interpolation", "cubicc"], "Unknown interpolation 'cubicc'. Did you mean 'bicubic'?"),
        (["train", "--workers", "-1"], "--workers"),
        (["train", "--device", "meta"], "device must be one that computes, got 'meta'"),
        (["train", "--data", "broken.npz", "--device", "meta"], "device must be one that computes"),  # before data are read
        (["train", "--epochs", "1", "--set", "training.epochs=abc"], "training.epochs: input should be a valid integer"),
        (["train", "--set", "data.memory_gib=-1"], "memory_gib must be at least 0, got -1.0"),
        (["train", "--set", "data.memory_gib=.nan"], "memory_gib must be at least 0, got nan"),
        (["train", "--output", ""], "--output must not be empty."),
        (["train", "--output="], "--output must not be empty."),
        (["train", "--epochs", "9" * 17], "epochs must be 1 to 1,000,000"),
        (["train", "--learning-rate", "inf"], "learning_rate must be positive and finite, got inf"),
        (["train", "--processes", "65"], "--processes must be from 1 to 64, got 65."),
        (["train", "--data", "hfds/"], "'hfds/' must go on with the name of a data set"),
        (["train", "--data", "wds/"], "'wds/' must go on with the name of a data set"),
        (["train", "--output", "file"], "must be a folder, and 'file' is a file"),
        (["demo", "--output", "file"], "--output must be a folder, and 'file' is a file"),
        (["audit", "run", "--output", "file"], "--output must be a folder, and 'file' is a file"),
        (["audit", "run", "--output", "file/x"], "--output must be a folder, and 'file' is a file"),
        (["audit", "run", "--batch-size", "0"], "--batch-size"),
        (["attack", "run", "--eps", ""], "--eps must not be empty."),
        (["attack", "run", "--eps", "1e400"], "--eps must be numbers of at least 0"),
        (["attack", "run", "--keep", "file"], "--keep must be a folder, and 'file' is a file"),
        (["attack", "run", "--output", "file/x.csv"], "is no folder that takes files"),
        (["attack", "run", "--attack", "os:system"], "attack 'os:system' must be a function of (model, images, labels)"),
        (["export", "run", "--temperature", "1e400"], "--temperature must be fit, none or a positive number"),
        (["corrupt", "--data", "digits", "--preview", "out.xyz"], "--preview must be a file *.png, got 'out.xyz'"),
        (["corrupt", "--data", "digits", "--output", "run"], "'run' must be a new or empty folder"),
        (["calibrate", "run", "--data", "three.npz"], "The model gives 10 logits, but the data have 3 classes."),
        (["study", "status", "main", "--results", "nowhere"], "No folder of results at 'nowhere'."),
        (["study", "run", "main", "--results", "out", "--work", "out/r/w"], "work must be outside of the results"),
        (["study", "run", "main", "--results", "out", "--work", "file"], "--work must be a folder, and 'file' is a file"),
        (["study", "run", "main", "--results", "out", "--engine", "ray"], "surefoot: "),
    ],
)
def test_a_line_and_nothing_left_behind(surefoot, here, run, monkeypatch, arguments, said):
    import numpy as np

    monkeypatch.setattr("surefoot.studies.engines.connect", no_cluster)
    shutil.copytree(run.folder, here / "run")
    (here / "file").write_text("")
    (here / "broken.npz").write_text("no arrays")
    np.savez(here / "three.npz", images=np.zeros((60, 32, 32, 3), np.uint8), labels=np.arange(60) % 3)
    before = sorted(here.rglob("*"))
    found = surefoot(*arguments)
    lines = [line for line in found.err.splitlines() if line.startswith("surefoot: ")]
    assert (found.code, len(lines), found.out) == (2, 1, ""), found
    assert said in lines[0]
    assert "Error" not in lines[0]
    assert sorted(here.rglob("*")) == before


def no_cluster():
    from surefoot.errors import SurefootError

    raise SurefootError("No Ray cluster is running here.")


def test_names_in_brackets_break_no_table(surefoot, here):
    import small_audits

    for name in ("[/red]", "\x1b[31mred"):
        small_audits.write(here / f"a{len(name)}", small_audits.audit(name), small_audits.predictions(len(name)))
    found = surefoot("compare", "a6", "a8")
    assert found.code == 0, found.err
    assert "[/red]" in found.out
    assert "\x1b[31m" not in found.out
