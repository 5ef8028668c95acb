"""`surefoot certify`: the table, the JSON, and that it gives what the function gives."""

import json
import shutil

import pytest

import surefoot as sf
from surefoot.geometry import certify


@pytest.fixture
def folder(run, here):
    shutil.copytree(run.folder, here / "r")
    return "r"


def test_the_table_and_the_json(surefoot, folder):
    command = ("certify", folder, "--noise-std", "0.25", "--n0", 10, "--n", 60, "--max-images", 12, "--radii", "0,1/10,0.3,9")
    shown = surefoot(*command)
    assert shown.code == 0, shown.err
    assert "r, test split, noise 0.25, 95 % intervals" in shown.out
    assert "images without a prediction; radii end at" in shown.out
    assert "not of the model itself" in shown.out
    assert shown.err == ""  # no terminal, no bar
    quiet = surefoot(*command, "--json", "--quiet")
    assert quiet.err == ""
    found = json.loads(quiet.out)
    assert [row["radius"] for row in found["curve"]] == [0, 0.1, 0.3, 9]
    left = [row["accuracy"] for row in found["curve"]]
    assert left == sorted(left, reverse=True)
    assert left[0] > 0.1
    assert left[-1] == 0
    batch = next(sf.load_data("digits", max_images=12).test.batches(100))
    model = sf.load_run(folder).predictor
    direct = certify(model, batch.images, batch.labels, 0.25, n0=10, n=60, indices=batch.indices)
    assert found["values"] == direct.values.tolist()
    assert found["predictions"] == direct.predictions.tolist()
    assert left[1] == direct.accuracy(0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--noise-std", "0"], "std must be positive, got 0.0."),
        (["--alpha", "2"], "alpha must be between 0 and 1, got 2.0."),
        (["--n", "0"], "n must be at least 1, got 0."),
        (["--radii", "0,x"], "--radii must be numbers of at least 0 with commas"),
        (["--std", "0.5"], "--mean and --std are for --model and --import"),
        (
            ["--model", "resnet18"],
            "Give a run folder or a model file, or --model with --checkpoint",
        ),
    ],
)
def test_errors_are_one_line(surefoot, folder, arguments, message):
    found = surefoot("certify", folder, "--max-images", 5, "--quiet", *arguments)
    assert found.code == 2
    assert message in found.err
    assert found.err.count("\n") == 1


def test_a_model_needs_data(surefoot):
    assert "--data must be given" in surefoot("certify", "--model", "resnet18").err


def test_any_module(surefoot, here):
    """An imported net on named data, with its normalisation: --std means what it means everywhere."""
    text = "from torch import nn\ndef net(): return nn.Sequential(nn.Flatten(), nn.Linear(NUMBER, 10))\n"
    size = next(sf.load_data("digits").test.batches(1)).images.numel()
    (here / "own_certified_net.py").write_text(text.replace("NUMBER", str(size)))
    options = ("--n0", 5, "--n", 20, "--max-images", 10, "--std", "0.5", "--json", "--quiet")
    found = surefoot("certify", "--import", "own_certified_net:net", "--data", "digits", *options)
    assert found.code == 0, found.err
    assert json.loads(found.out)["std"] == 0.25
