import json

import numpy as np
import pytest
import torch

import surefoot as sf
from surefoot.calibration import fit_temperature, scores
from surefoot.models.classifier import predict


@pytest.fixture
def trained(run, here):
    """The shared run, copied, so that copies may be written beside it."""
    import shutil

    shutil.copytree(run.folder, here / "r")
    return here / "r"


def test_a_calibrated_copy(surefoot, trained, digits, run):
    before = {path.name: path.read_bytes() for path in trained.iterdir()}
    said = surefoot("calibrate", trained)
    assert said.code == 0, said.err
    assert "fitted on 178 images of the calibration split" in said.out
    assert {path.name: path.read_bytes() for path in trained.iterdir()} == before
    copy = sf.load_run(trained.parent / "r-temperature")
    bare, fixed = (
        predict(model.eval(), digits.test.batches(200)) for model in (sf.load_run(trained).predictor, copy.predictor)
    )
    expected = fit_temperature(predict(run.predictor, digits.calibration.batches(256)))
    assert copy.calibrator.temperature == pytest.approx(expected.temperature, rel=1e-6)
    assert copy.repair is copy.calibrator  # its former name
    assert torch.allclose(fixed.logits, bare.logits / expected.temperature, rtol=1e-5)
    assert torch.equal(fixed.classes, bare.classes)
    assert scores(fixed, intervals=0).accuracy == scores(bare, intervals=0).accuracy
    assert copy.calibrator.fitted_on.indices.tolist() == digits.calibration.indices.tolist()


@pytest.mark.parametrize("method", ["feature-scaling", "vector", "bias", "isotonic"])
def test_every_method_as_json(surefoot, trained, method, digits):
    found = surefoot("calibrate", trained, "--method", method, "--json", "--quiet")
    assert found.code == 0, found.err
    said = json.loads(found.out)
    assert (said["method"], said["fitted_on"], said["images"]) == (method, "calibration", len(digits.calibration))
    assert said["nll_after"] <= said["nll_before"] + 1e-9
    logits = predict(sf.load_run(trained.parent / f"r-{method}").predictor, digits.test.batches(200)).logits
    assert torch.isfinite(logits).all()


def test_a_calibrated_run_is_audited_but_not_on_the_images_of_its_fit(surefoot, trained):
    assert surefoot("calibrate", trained, "--output", "c", "--quiet").code == 0
    found = json.loads(surefoot("audit", "c", "--json", "--quiet").out)
    assert found["temperature"]["fitted_on"] == "the calibration split"
    assert found["temperature"]["temperatures"][0] == pytest.approx(1, abs=1e-4)  # there is nothing left to calibrate
    refused = surefoot("audit", "c", "--split", "calibration", "--quiet")
    assert refused.code == 2
    assert "178 of 178 images were fitted on" in refused.err
    assert refused.err.count("\n") == 1
    assert surefoot("audit", "c", "--split", "calibration", "--allow-leakage", "--quiet").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "temprature"], "Unknown calibration method 'temprature'. Did you mean 'temperature'?"),
        (["--split", "train"], "--split must be one that neither training nor test uses, got train"),
        (["--split", "test"], "its scores there would flatter (--allow-leakage)"),
        (["--split", "calibratoin"], "Unknown split 'calibratoin'. Did you mean 'calibration'?"),
        (["--output", "r"], "output must be another folder than the run's own"),
    ],
)
def test_errors_are_one_line(surefoot, trained, arguments, message):
    found = surefoot("calibrate", "r", *arguments)
    assert found.code == 2
    assert message in found.err
    assert found.err.count("\n") == 1
    assert [path.name for path in trained.parent.iterdir()] == ["r"]


def test_a_copy_is_not_calibrated_again_and_nothing_is_overwritten(surefoot, trained, monkeypatch):
    assert surefoot("calibrate", "r", "--quiet").code == 0
    assert "is calibrated already" in surefoot("calibrate", "r-temperature").err
    monkeypatch.setattr("surefoot.models.classifier.predict", None)  # refused before any image is looked at
    assert "must be a new or empty folder, and 'r-temperature' is not: give another" in surefoot("calibrate", "r").err


@pytest.mark.parametrize("suffix", ["npz", "csv", "safetensors"])
def test_predictions_of_any_program_are_audited(surefoot, here, suffix):
    draws = np.random.default_rng(0)
    logits = draws.normal(size=(300, 4)) * 5
    labels = np.array([draws.choice(4, p=np.exp(z / 3) / np.exp(z / 3).sum()) for z in logits])
    given = sf.Predictions.from_logits(torch.tensor(logits), torch.tensor(labels))
    given.save(here / f"theirs.{suffix}")
    said = surefoot("audit", "--predictions", f"theirs.{suffix}")
    assert said.code == 0, said.err
    assert "page: audits/theirs/report.html" in said.out
    assert f"surefoot audit --predictions theirs.{suffix}" in (here / "audits/theirs/report.html").read_text()
    found = json.loads((here / "audits/theirs/audit.json").read_text())
    assert found["calibration"]["ece"]["value"] == pytest.approx(scores(given, intervals=0).ece)
    assert found["temperature"]["fitted_on"] == "two-fold cross-fitting on the given split"
    assert found["temperature"]["temperatures"] == pytest.approx([3, 3], rel=0.4)
    assert found["temperature"]["calibration"]["ece"]["value"] < found["calibration"]["ece"]["value"]
    named = surefoot("audit", "--predictions", f"theirs.{suffix}", "--calibrate-on", f"theirs.{suffix}")
    assert "300 of 300 images were fitted on" in named.err
    sf.Predictions.from_logits(given.logits[:150] + 1e-9, given.labels[:150]).save(here / "own.csv")
    own = surefoot("audit", "--predictions", f"theirs.{suffix}", "--calibrate-on", "own.csv", "--json")
    assert json.loads(own.out)["temperature"]["images"] == 150


def test_a_csv_whose_labels_are_names_of_classes(surefoot, here):
    """As scikit-learn's `predict_proba` and `classes_` write it; the page says the names."""
    draws = np.random.default_rng(0)
    names = np.array(["cat", "dog <b>", "cow"])
    for name, order in (("mine", [0, 1, 2]), ("other", [1, 0, 2])):
        p = draws.dirichlet([0.5] * 3, size=120)
        rows = [[names[draws.choice(3, p=row)], *(f"{row[k]:.4f}" for k in order)] for row in p]
        head = ["label", *(f"probability_{names[k]}" for k in order)]
        (here / f"{name}.csv").write_text("\n".join(map(",".join, [head, *rows])))
    said = surefoot("audit", "--predictions", "mine.csv")
    assert said.code == 0, said.err
    found = json.loads((here / "audits/mine/audit.json").read_text())
    assert found["subject"]["classes"] == names.tolist()
    assert "dog &lt;b&gt;" in (here / "audits/mine/report.html").read_text()
    other = surefoot("audit", "--predictions", "mine.csv", "--calibrate-on", "other.csv")
    assert other.code == 2
    assert "calibrate_on's classes must be cat, dog <b>, cow, got 'dog <b>, cat, cow'" in other.err


def test_predictions_take_no_options_of_a_model(surefoot, here):
    sf.Predictions.from_logits(torch.randn(4, 3), torch.tensor([0, 1, 2, 0])).save(here / "p.csv")
    assert "--predictions takes no --data" in surefoot("audit", "--predictions", "p.csv", "--data", "digits").err
    for flag in (["--depth", "full"], ["--corrupted", "c"], ["--processes", "2"]):
        assert f"--predictions takes no {flag[0]}" in surefoot("audit", "--predictions", "p.csv", *flag).err
    assert "cross-fit or a file" in surefoot("audit", "--predictions", "p.csv", "--calibrate-on", "calibration").err
    assert "risks must be between 0 and 1, got 1.5." in surefoot("audit", "--predictions", "p.csv", "--risk", "1.5").err
    assert "No predictions at 'q.csv'" in surefoot("audit", "--predictions", "q.csv").err


def test_the_temperature_of_an_audit_never_comes_from_train(surefoot, trained):
    refused = surefoot("audit", "r", "--calibrate-on", "train")
    assert refused.code == 2
    assert "must not be the training split" in refused.err
    assert refused.err.count("\n") == 1


def test_predictions_of_two_sets_that_are_both_numbered_from_0(surefoot, here):
    """The same places, other labels: other images, so the second may calibrate the first."""
    draws = torch.Generator().manual_seed(0)
    for name, count in (("test", 200), ("val", 150)):
        labels = torch.randint(3, (count,), generator=draws)
        logits = torch.randn(count, 3, generator=draws) + 3 * torch.nn.functional.one_hot(labels, 3)
        sf.Predictions.from_logits(logits, labels, indices=torch.arange(count)).save(here / f"{name}.csv")
    found = surefoot("audit", "--predictions", "test.csv", "--calibrate-on", "val.csv", "--json")
    assert json.loads(found.out)["temperature"]["images"] == 150
    same = surefoot("audit", "--predictions", "test.csv", "--calibrate-on", "test.csv")
    assert "200 of 200 images were fitted on" in same.err
    anyway = surefoot("audit", "--predictions", "test.csv", "--calibrate-on", "test.csv", "--allow-leakage", "--quiet")
    assert anyway.code == 0, anyway.err


def test_classes_in_another_order_are_refused(surefoot, here):
    from PIL import Image

    for name in ("cat", "dog"):
        (here / "pets" / name).mkdir(parents=True)
        for number in range(24):
            pixels = np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(here / "pets" / name / f"{number}.png")
    (here / "order.txt").write_text("dog\ncat\n")
    order = ("--class-map", "order.txt")
    trained = surefoot("train", "--data", "pets", *order, "--epochs", 1, "--batch-size", 8, "--output", "r", "--quiet")
    assert trained.code == 0
    (here / "pets").rename(here / "others")
    refused = surefoot("calibrate", "r", "--data", "others")
    assert refused.code == 2
    assert "class 'cat' is number 1 of the run and 0 of the data; give the run's order with --class-map" in refused.err
    assert not (here / "r-temperature").exists()
    assert surefoot("calibrate", "r", "--data", "others", *order).code == 0
