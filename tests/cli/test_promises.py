"""`surefoot calibrate --prediction-sets --risk`: what the copy promises, in Python and in exported files."""

import json
import shutil

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot.calibration.disjoint import parted
from surefoot.models.classifier import predict


@pytest.fixture
def trained(run, here):
    shutil.copytree(run.folder, here / "r")
    return here / "r"


def test_a_copy_that_promises(surefoot, trained, digits, run):
    said = surefoot("calibrate", "r", "--prediction-sets", "0.9", "--risk", "0.1", "--output", "c")
    assert said.code == 0, said.err
    assert "prediction sets (lac): coverage 0.9 of all images, from 142 other images" in said.out
    copy = sf.load_run("c")
    whole = predict(run.predictor, digits.calibration.batches(256))
    first, rest = parted(whole, 0.2, 0)
    own = sf.calibration.fit_temperature(first)
    assert copy.calibrator.temperature == pytest.approx(own.temperature, rel=1e-6)
    sets, bound = copy.guarantees.prediction_sets, copy.guarantees.risk_threshold
    assert (sets.images, sets.tuned_on, bound.images) == (len(rest), len(first), len(rest)) == (142, 36, 142)
    expected = sf.calibration.fit_prediction_sets(own.calibrate(rest), 0.9, tuning=own.calibrate(first, allow_leakage=True))
    assert sets.thresholds.tolist() == pytest.approx(expected.thresholds.tolist(), abs=1e-4)
    batch = next(digits.test.batches(60))
    answers = copy.answer(batch.images, batch.indices)
    with torch.no_grad():
        logits = copy.predictor.eval()(batch.images)
    assert torch.equal(answers.sets, sets.apply(logits))
    assert torch.equal(answers.answered, bound.answers(logits))
    assert torch.equal(answers.classes, logits.argmax(1))
    if bound.threshold is None:
        assert bound.note in said.out
    else:
        assert f"answers alone from confidence {bound.threshold} on: at most 10 % wrong with probability 0.95" in said.out
    plain = sf.load_run("r").answer(batch.images)
    assert plain.sets is None
    assert plain.answered is None
    refused = surefoot("audit", "c", "--split", "calibration", "--quiet")
    assert "178 of 178 images were fitted on" in refused.err  # those of the promises too


def test_as_json_when_nothing_can_be_promised(surefoot, trained):
    found = surefoot("calibrate", "r", "--risk", "0.01", "--json", "--quiet")
    assert found.code == 0, found.err
    said = json.loads(found.out)["risk_threshold"]
    assert said["threshold"] is None
    assert said["note"].startswith("No threshold can be promised with so few images: an error rate of 1 %")
    assert "prediction_sets" not in json.loads(found.out)


@pytest.mark.parametrize("score", ["lac", pytest.param("aps", marks=pytest.mark.stress), "raps"])
def test_an_exported_file_carries_them(surefoot, trained, digits, score):
    options = ["--prediction-sets", "0.8", "--set-score", score, "--by-class", "--risk", "0.4", "--confidence", "0.8"]
    made = surefoot("calibrate", "r", *options, "--tuning", "0.3", "--output", "c", "--quiet")
    assert made.code == 0, made.err
    written = surefoot("export", "c", "--quiet")
    assert written.code == 0, written.err
    copy, images = sf.load_run("c"), next(digits.test.batches(40)).images
    session = onnxruntime.InferenceSession("c/model.onnx", providers=["CPUExecutionProvider"])
    assert [given.name for given in session.get_outputs()] == ["probabilities", "logits", "set", "answer"]
    answers = copy.answer(images)
    for count in (1, 40):
        probabilities, members, answer = session.run(["probabilities", "set", "answer"], {"images": images[:count].numpy()})
        assert (members.dtype, members.shape, answer.dtype, answer.shape) == (np.bool_, (count, 10), np.bool_, (count,))
        assert np.array_equal(members, answers.sets[:count].numpy())
        assert np.array_equal(answer, answers.answered[:count].numpy())
        assert np.allclose(probabilities.max(1), answers.confidences[:count].numpy(), atol=1e-5)
    about = json.loads(session.get_modelmeta().custom_metadata_map["guarantees"])
    assert about["prediction_sets"]["coverage"] == 0.8
    assert about["risk_threshold"]["threshold"] == copy.guarantees.risk_threshold.threshold
    assert "--temperature would void the run's guarantees" in surefoot("export", "c", "--temperature", "2").err


def test_a_torch_program_carries_them(surefoot, trained, digits):
    assert surefoot("calibrate", "r", "--prediction-sets", "0.8", "--output", "c", "--quiet").code == 0
    written = surefoot("export", "c", "--format", "torch", "--quiet")
    assert written.code == 0, written.err
    images = next(digits.test.batches(5)).images
    found = torch.export.load("c/model.pt2").module()(images)
    assert len(found) == 3
    assert torch.equal(found[2], sf.load_run("c").answer(images).sets)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prediction-sets", "1"], "--prediction-sets must be between 0 and 1, got 1.0"),
        (["--prediction-sets", "0"], "--prediction-sets must be between 0 and 1, got 0.0"),
        (["--risk", "nan"], "--risk must be between 0 and 1, got nan"),
        (["--risk", "0.1", "--confidence", "1"], "--confidence must be between 0 and 1, got 1.0"),
        (["--prediction-sets", "0.9", "--set-score", "rasp"], "Unknown score of prediction sets 'rasp'. Did you mean 'raps'?"),
        (["--set-score", "aps"], "--set-score and --by-class are for --prediction-sets."),
        (["--by-class"], "--set-score and --by-class are for --prediction-sets."),
        (["--confidence", "0.9"], "--confidence is for --risk."),
        (["--tuning", "0.5"], "--tuning is for --prediction-sets and --risk."),
    ],
)
def test_errors_are_one_line(surefoot, trained, arguments, message):
    found = surefoot("calibrate", "r", *arguments)
    assert found.code == 2
    assert message in found.err
    assert found.err.count("\n") == 1
    assert [path.name for path in trained.parent.iterdir()] == ["r"]


def test_no_calibration_split(surefoot, trained, here):
    for name in sf.load_run("r").class_names:
        folder = here / "data" / "test" / name
        folder.mkdir(parents=True)
        Image.new("RGB", (32, 32), (90, 0, 0)).save(folder / "a.png")
    for asked in (["--risk", "0.1"], ["--prediction-sets", "0.9"], []):
        found = surefoot("calibrate", "r", *asked, "--data", "data")
        assert found.code == 2
        assert "The calibration split has no images to fit a calibrator on (data.calibration)." in found.err
        assert found.err.count("\n") == 1
