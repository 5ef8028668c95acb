"""Every command that looks at a model takes every kind of it that `audit` takes, or says in one line why not."""

import json
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import surefoot as sf
from surefoot.calibration import fit_temperature
from surefoot.errors import SurefootError
from surefoot.models.classifier import predict
from surefoot.types import Predictions

THEIRS = """
import torch
from torch import nn
def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
def known():
    torch.manual_seed(0)
    return build()
class Forest:
    def predict_proba(self, rows):
        with torch.no_grad():
            return known()[1](torch.from_numpy(rows)).softmax(1).numpy()
forest = Forest()
"""
KINDS = {
    "module": ("--import", "theirs.py:known"),
    "module and checkpoint": ("--import", "folder/theirs.py:build", "--checkpoint", "linear.safetensors"),
    "predict_proba": ("--import", "theirs.py:forest"),
    "name": ("--model", "tiny-resnet", "--checkpoint", "small.safetensors"),
    "onnx": ("linear.onnx",),
    "torchscript": ("--model", "linear.pt", "--image-size", 8),
}
WAYS = {
    "audit": ("--depth", "clean"),
    "attack": ("--attack", "noise", "--eps", "4/255", "--no-check"),
    "certify": ("--n0", 2, "--n", 4),
    "export": ("--format", "torch", "--output", "out.pt2"),
    "calibrate": ("--output", "calibrated"),
}
NOT_WRITTEN = ("predict_proba", "onnx", "torchscript")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A linear net in every form, and 60 pictures."""
    folder = tmp_path_factory.mktemp("files")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 3)).eval()
    some = (torch.rand(2, 3, 8, 8),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both are of the past, and quick
        axes = {"dynamic_axes": {"images": {0: "count"}}, "input_names": ["images"]}
        torch.onnx.export(net, some, folder / "linear.onnx", dynamo=False, verbose=False, **axes)
        torch.jit.trace(net, some).save(str(folder / "linear.pt"))
    (folder / "folder").mkdir()
    for place in ("theirs.py", "folder/theirs.py"):
        (folder / place).write_text(THEIRS)
    save_file({f"module.{name}": value for name, value in net.state_dict().items()}, folder / "linear.safetensors")
    small = sf.load_model("tiny-resnet", num_classes=3, image_size=8, seed=0)
    save_file({name: value.contiguous() for name, value in small.state_dict().items()}, folder / "small.safetensors")
    draws = np.random.default_rng(0)
    images = draws.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
    np.savez(folder / "data.npz", images=images, labels=np.arange(60) % 3)
    return folder, net, torch.from_numpy(images).permute(0, 3, 1, 2) / 255


@pytest.fixture
def there(files, here):
    """The files in the working folder."""
    for path in files[0].rglob("*"):
        if path.is_file():
            place = here / path.relative_to(files[0])
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(path.read_bytes())
    return files


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_takes_it(surefoot, there, kind):
    _, net, images = there
    known = kind != "name"  # the others are all the same net
    right = float((net(images).argmax(1) == torch.arange(60) % 3).double().mean())
    held_out = sf.load_data("data.npz").calibration
    wanted = fit_temperature(predict(net, held_out.batches(60))).temperature
    for command, options in WAYS.items():
        done = surefoot(command, *KINDS[kind], "--data", "data.npz", *options, "--json")
        if command == "export" and kind in NOT_WRITTEN:
            assert done.code == 2
            assert "export writes torch modules, and" in done.err.splitlines()[-1]
            continue
        assert done.code == 0, (command, done.err)
        said = json.loads(done.out)
        if command == "audit" and known:
            assert said["calibration"]["accuracy"]["value"] == pytest.approx(right)
        if command == "attack" and known:
            assert said["curve"][0]["images"] == 60
        if command == "calibrate" and known:
            assert said["images"] == len(held_out)
            assert said["temperature"] == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("kind", ["module and checkpoint", "onnx", "name"])
def test_a_calibrated_model_is_used_like_a_run(surefoot, there, here, kind):
    _, net, _ = there
    fitted = surefoot("calibrate", *KINDS[kind], "--data", "data.npz", *WAYS["calibrate"], "--json")
    assert fitted.code == 0, fitted.err
    temperature = json.loads(fitted.out)["temperature"]
    program = kind != "name"
    for name in ("linear.onnx", "linear.safetensors", "small.safetensors"):
        (here / name).unlink()  # what is needed went with it
    if program:
        refused = surefoot("audit", "calibrated", "--depth", "clean")
        assert refused.code == 2
        assert "names a model that is a program" in refused.err
    trust = ("--allow-code",) if program else ()
    leaking = surefoot("audit", "calibrated", *trust, "--depth", "clean", "--split", "calibration", "--output", "leak")
    assert "images were fitted on" in leaking.err.splitlines()[-1]
    audited = surefoot("audit", "calibrated", *trust, "--depth", "clean", "--json")
    assert audited.code == 0, audited.err
    found = json.loads(audited.out)
    assert "calibrated: Temperature, fitted on data.npz, is behind it" in found["subject"]["model"]
    if program:
        test = sf.load_data("data.npz").test  # its images are not those of the fit
        nll = nn.functional.cross_entropy(net(test.images / 255).detach() / temperature, test.labels)
        assert found["calibration"]["nll"]["value"] == pytest.approx(float(nll), abs=1e-4)
    attacked = surefoot("attack", "calibrated", *trust, *WAYS["attack"], "--json")
    assert attacked.code == 0, attacked.err
    exported = surefoot("export", "calibrated", *trust, *WAYS["export"], "--json")
    assert exported.code == (2 if kind == "onnx" else 0), exported.err
    if kind != "onnx":
        assert json.loads(exported.out)["temperature"] == pytest.approx(temperature)
    again = surefoot("calibrate", "calibrated", *trust, "--output", "twice")
    assert "is calibrated already; calibrate the model that it was made from" in again.err
    with pytest.raises(SurefootError, match="is a calibrated model from elsewhere, not a run: commands read it; in Python"):
        sf.load_run(here / "calibrated")
    other = surefoot("audit", "calibrated", *trust, "--mean", "0.5")
    assert "--mean is not for a calibrated model, which knows its own" in other.err


def test_weights_that_changed_are_refused(surefoot, there, here):
    done = surefoot("calibrate", *KINDS["module"], "--data", "data.npz", *WAYS["calibrate"], "--quiet")
    assert done.code == 0, done.err
    (here / "theirs.py").write_text(THEIRS.replace("manual_seed(0)", "manual_seed(12)"))
    refused = surefoot("audit", "calibrated", "--allow-code", "--depth", "clean")
    assert "has other weights now than when it was calibrated" in refused.err


def test_predictions(surefoot, there, here):
    """Fitted on one file, applied to another; what needs the model says so."""
    _, net, images = there
    logits, labels = net(images).detach(), torch.arange(60) % 3
    for name, rows in (("fit", slice(0, 40)), ("test", slice(40, 60))):
        Predictions.from_logits(logits[rows], labels[rows]).save(f"{name}.npz")
    done = surefoot("calibrate", "--predictions", "fit.npz", "--apply", "test.npz", "--output", "better.npz", "--json")
    assert done.code == 0, done.err
    wanted = fit_temperature(Predictions.load("fit.npz")).temperature
    assert json.loads(done.out)["temperature"] == pytest.approx(wanted)
    assert torch.allclose(Predictions.load("better.npz").logits.float(), logits[40:] / wanted, atol=1e-5)
    assert surefoot("audit", "--predictions", "better.npz", "--json").code == 0
    for command in ("attack", "certify", "export"):
        refused = surefoot(command, "--predictions", "test.npz")
        assert refused.code == 2
        line = f"surefoot: {command} needs the model itself: --predictions is for audit and calibrate."
        assert refused.err.strip() == line
    for more, said in (
        (("--data", "data.npz"), "--predictions takes no --data."),
        (("--method", "feature-scaling"), "needs the model, and --predictions are of none"),
        (("--risk", 0.1), "--predictions takes no --prediction-sets"),
    ):
        refused = surefoot("calibrate", "--predictions", "fit.npz", *more)
        assert refused.code == 2
        assert said in refused.err
    assert "--apply is for --predictions" in surefoot("calibrate", "run", "--apply", "test.npz").err


def test_wrong_imports_and_checkpoints(surefoot, there):
    for options, said in (
        (("--import", "nothing.py:build"), "names a file that is not there, 'nothing.py'"),
        (("--import", "theirs.py:bild"), "Did you mean 'build'?"),
        (("--import", "theirs.py:forest", "--checkpoint", "linear.safetensors"), "--checkpoint needs a module, and"),
        (("--import", "theirs.py:build", "--checkpoint", "small.safetensors"), "does not fit the model"),
    ):
        refused = surefoot("audit", *options, "--data", "data.npz")
        assert refused.code == 2
        assert said in refused.err
        assert refused.err.count("\n") == 1
