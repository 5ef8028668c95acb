"""Models and data as people have them, on the command line; what ships is compared with what was trained."""

import json
import shutil
import sys

import numpy as np
import pytest
import torch

import surefoot as sf


@pytest.fixture(scope="module")
def deployed(run, digits, tmp_path_factory):
    """The run as ONNX."""
    path = tmp_path_factory.mktemp("deployed") / "r20.onnx"
    sf.export(run.model, next(iter(digits.test.batches(8))).images, path)
    return path


def test_an_onnx_file_is_audited(surefoot, deployed, here, quicker):
    """It answered: No run folder at 'r20.onnx'. Did you mean 'r20.onnx'?"""
    done = surefoot("audit", deployed, "--data", "digits", "--max-images", 60, "--only", "corruptions", "--json")
    assert done.code == 0, done.err
    audit = json.loads(done.out)
    assert audit["subject"]["data"]["name"] == "digits"
    assert audit["corruptions"]
    assert not audit["attacks"]
    assert any(line.startswith("ONNX, input 'images'") for line in audit["subject"]["model"])
    assert (here / "audits" / "r20" / "report.html").is_file()
    again = surefoot("audit", "--model", deployed, "--data", "digits", "--max-images", 60, "--only", "corruptions", "--json")
    assert json.loads(again.out)["calibration"]["nll"] == audit["calibration"]["nll"]


def test_without_data_it_says_so(surefoot, deployed):
    done = surefoot("audit", deployed)
    assert (done.code, done.err.strip()) == (2, f"surefoot: --data must be given with '{deployed}'.")
    done = surefoot("audit", "nothing.onnx", "--data", "digits")
    assert (done.code, done.err.strip()) == (2, "surefoot: No model file at 'nothing.onnx'.")


def test_what_is_left_out_is_printed(surefoot, deployed, here, quicker):
    done = surefoot("audit", deployed, "--data", "digits", "--max-images", 30, "--skip", "corruptions,attacks")
    assert done.code == 0, done.err
    assert "Left out, since no gradient reaches the pixels: displacement" in done.out


@pytest.mark.parametrize("kind", ["predict_proba", "function", "made"])
def test_imports_are_found_by_what_they_are(surefoot, here, monkeypatch, quicker, kind):
    (here / "theirs.py").write_text(
        "import numpy as np\n"
        "weight = np.random.default_rng(0).normal(size=(3 * 32 * 32, 10)) / 20\n"
        "def scores(images): return images.flatten(1).numpy() @ weight\n"
        "class Model:\n"
        "    def predict_proba(self, rows):\n"
        "        values = np.exp(rows @ weight - (rows @ weight).max(1, keepdims=True))\n"
        "        return values / values.sum(1, keepdims=True)\n"
        "model = Model()\n"
        "def made(large=False): return Model()\n"
    )
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.delitem(sys.modules, "theirs", raising=False)
    name = {"predict_proba": "model", "function": "scores", "made": "made"}[kind]
    options = ("--data", "digits", "--max-images", 40, "--only", "sensitivity", "--json")
    done = surefoot("audit", "--import", f"theirs:{name}", *options)
    assert done.code == 0, done.err
    data = sf.load_data("digits", max_images=40).test
    weight = np.random.default_rng(0).normal(size=(3 * 32 * 32, 10)) / 20
    wanted = ((data.images / 255).flatten(1).numpy() @ weight).argmax(1) == data.labels.numpy()
    assert json.loads(done.out)["calibration"]["accuracy"]["value"] == pytest.approx(wanted.mean())


def test_classes_and_shifts(surefoot, deployed, here, quicker):
    """Digits 3 and 5 alone, scored on two of ten outputs, beside a shift."""
    data = sf.load_data("digits")
    for place in ("some", "others"):
        keep = [row for row in range(len(data.test)) if int(data.test.labels[row]) in (3, 5)][:30]
        images = data.test.images[keep].permute(0, 2, 3, 1).numpy()
        np.savez(here / f"{place}.npz", images=images, labels=(data.test.labels[keep] == 5).long().numpy())
    options = ("--max-images", 1000, "--only", "sensitivity", "--split", "test")
    refused = surefoot("audit", deployed, "--data", "some.npz", *options)
    assert refused.code == 2
    assert "The model has 10 outputs, and the data have 2 classes: say which is which with classes (--classes)." in refused.err
    done = surefoot("audit", deployed, "--data", "some.npz", *options, "--classes", "3,5", "--shift", "others.npz", "--json")
    assert done.code == 0, done.err
    audit = json.loads(done.out)
    assert "2 classes of the data are scored on the model's 10 outputs as given" in " ".join(audit["subject"]["model"])
    assert audit["measurements"]["shift"]["others.npz"]["accuracy"]["value"] == audit["calibration"]["accuracy"]["value"]


def test_what_ships_is_compared_with_what_was_trained(surefoot, run, here, quicker):
    """`export --quantise int8` makes a file, and `compare` audits it on the run's images."""
    shutil.copytree(run.folder, here / "mine")  # an audit writes into it
    exported = surefoot("export", "mine", "--quantise", "int8", "--output", "net-int8.onnx", "--json")
    assert exported.code == 0, exported.err
    made = json.loads(exported.out)
    assert made["agreement"] >= 0.9
    about = json.loads((here / "net-int8.onnx.json").read_text())
    assert about["quantised"] == "int8, static, ranges of 128 images"
    import onnx

    kinds = {node.op_type for node in onnx.load("net-int8.onnx").graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds
    model = sf.load_model("net-int8.onnx")
    images = next(iter(sf.load_data("digits").test.batches(64))).images
    with torch.no_grad():
        share = (model(images).argmax(1) == run.model(images).argmax(1)).double().mean()
    assert float(share) == pytest.approx(made["agreement"])
    done = surefoot("compare", "mine", "net-int8.onnx", "--json")
    assert done.code == 0, done.err
    differences = {item["name"]: item for item in json.loads(done.out)["differences"]}
    assert differences["calibration.accuracy"]["paired"]
    assert differences["corruptions.mean_accuracy"]["paired"]
    refused = surefoot("compare", "net-int8.onnx", "mine")
    assert "The first must be a run or an audit" in refused.err
    wrong = surefoot("export", "mine", "--quantise", "int4")
    assert "--quantise takes int8" in wrong.err
