"""`surefoot export`: which temperature goes into the file, from a run, a calibrated copy and a named model."""

import json
import shutil

import onnxruntime
import pytest
import torch

import surefoot as sf
from surefoot.attacks.cache import fingerprint
from surefoot.calibration import fit_temperature
from surefoot.models import _export
from surefoot.models.classifier import predict


@pytest.fixture
def trained(run, here):
    shutil.copytree(run.folder, here / "r")
    return here / "r"


def logits_of(path, images):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(["logits"], {"images": images.numpy()})[0])


def test_a_run_as_onnx_with_a_fitted_temperature(surefoot, trained, digits, run):
    found = surefoot("export", "r", "--temperature", "fit")
    assert found.code == 0, found.err
    wanted = fit_temperature(predict(run.predictor, digits.calibration.batches(256))).temperature
    assert f"temperature: {wanted:.4g}, fitted on {len(digits.calibration)} images of the calibration split" in found.out
    assert "on 64 images" in found.out
    images = next(digits.test.batches(5)).images
    with torch.no_grad():
        expected = run.model.eval()(images) / wanted
    assert torch.allclose(logits_of(trained / "model.onnx", images), expected, rtol=1e-4, atol=1e-5)
    assert json.loads((trained / "model.onnx.json").read_text())["classes"] == list(digits.class_names)


def test_which_temperature(surefoot, trained, here, monkeypatch):
    """In this order: what was asked, the calibrator, the audit's only temperature, none. The first is written, others named."""
    given = []

    def said(*arguments):
        found = surefoot("export", *arguments, "--format", "torch", "--json", "--quiet")
        assert found.code == 0, found.err
        told = json.loads(found.out)
        assert [told["temperature"]] == given[-1:] or not given
        return told

    def named(model, images, path, *, temperature, **_):
        given.append(temperature)
        return _export.Exported(path, len(images), 0.0, 0.0)

    assert said("r")["calibration"].startswith("none: no audit has found one")
    monkeypatch.setattr(_export, "export", named)
    scaling = {"temperatures": [1.7], "fitted_on": "the calibration split"}
    (trained / "audit.json").write_text(json.dumps({"subject": {"weights": "others"}, "temperature": scaling}))
    assert said("r")["calibration"].startswith("none: the audit there is of other weights")
    subject = {"weights": fingerprint(sf.load_run(trained).predictor)}
    (trained / "audit.json").write_text(json.dumps({"subject": subject, "temperature": scaling}))
    assert said("r")["temperature"] == 1.7
    assert said("r", "--temperature", "3/2")["temperature"] == 1.5
    assert said("r", "--temperature", "none")["temperature"] == 1.0
    two = {"temperatures": [1.7, 1.8], "fitted_on": "x"}
    (trained / "audit.json").write_text(json.dumps({"subject": subject, "temperature": two}))
    assert "its audit has 2" in said("r")["calibration"]
    assert surefoot("calibrate", "r", "--quiet").code == 0
    copy = sf.load_run(here / "r-temperature")
    assert said("r-temperature")["temperature"] == copy.calibrator.temperature
    assert said("r-temperature", "--temperature", "none")["temperature"] == 1.0


@pytest.mark.parametrize("method", ["vector", "isotonic"])
def test_other_calibrators_are_inside(surefoot, trained, here, digits, method):
    assert surefoot("calibrate", "r", "--method", method, "--quiet").code == 0
    found = surefoot("export", f"r-{method}", "--output", "x/m.pt2", "--format", "torch", "--json")
    assert found.code == 0, found.err
    assert "is inside" in json.loads(found.out)["calibration"]
    images = next(digits.test.batches(5)).images
    with torch.no_grad():
        expected = sf.load_run(here / f"r-{method}").predictor(images)
        found = torch.export.load(here / "x" / "m.pt2").module()(images)[1]
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_what_onnx_cannot_take_is_one_line(surefoot, trained, here):
    assert surefoot("calibrate", "r", "--method", "isotonic", "--quiet").code == 0
    found = surefoot("export", "r-isotonic")
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert "ONNX cannot take this model: " in found.err
    assert not list((here / "r-isotonic").glob("model.onnx*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["r", "--temperature", "warm"], "--temperature must be fit, none or a positive number, got 'warm'."),
        (["r", "--temperature", "-1"], "--temperature must be fit, none or a positive number"),
        (["r", "--fit-on", "validation"], "--fit-on is for --temperature fit."),
        (["r", "--temperature", "fit", "--fit-on", "train"], "--fit-on must not be train"),
        (["r", "--format", "onx"], "Unknown format 'onx'. Did you mean 'onnx'?"),
        (["r", "--output", "m.pth"], "output must be a file *.onnx, got 'm.pth'."),
        ([], "Give a run folder or a model file, or --model with --checkpoint"),
        (["nowhere"], "No run folder at 'nowhere'."),
    ],
)
def test_errors_are_one_line(surefoot, trained, arguments, message):
    found = surefoot("export", *arguments)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert message in found.err


@pytest.mark.parametrize("flags", [["--format", "onx"], ["--output", "m.pth"], ["--temperature", "warm"], []])
def test_what_is_wrong_is_said_before_a_model_is_read(surefoot, trained, monkeypatch, flags):
    read = []
    monkeypatch.setattr("surefoot.cli.export.find_target", lambda *names, **more: read.append(names))
    monkeypatch.setattr("surefoot.models.arguments.NEEDED", ("onnx", "no_such_module"))
    found = surefoot("export", "r", *flags)
    assert (found.code, read) == (2, [])
    if not flags:
        assert "Export to ONNX needs no_such_module" in found.err
