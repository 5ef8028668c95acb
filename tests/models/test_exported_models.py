"""Files that other programs read give the model's own answers, for any number of images, and say what they are."""

import io
import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import surefoot as sf
from surefoot.errors import SurefootError, UnknownName
from surefoot.models._export import export


@pytest.fixture(scope="module")
def pictures(digits):
    return next(digits.test.batches(8)).images


@pytest.fixture(scope="module")
def small(digits):
    """A small net whose normalisation matters."""
    return sf.load_model("tiny-resnet", data=digits, seed=0, mean=0.3, std=0.2).eval()


def expected(model, images, temperature):
    """Written out: normalise, run, divide, softmax."""
    with torch.no_grad():
        return model.module((images - model.mean) / model.std) / temperature


@pytest.mark.parametrize("name", ["tiny-resnet", "resnet10t", pytest.param("resnet18", marks=pytest.mark.stress)])
def test_onnx_in_onnxruntime_with_one_image_and_five(name, digits, pictures, tmp_path):
    model = sf.load_model(name, data=digits, seed=0, mean=0.3, std=0.2).eval()
    names = list(digits.class_names)
    done = export(model, pictures, tmp_path / "m.onnx", temperature=2.5, metadata={"classes": names})
    assert (done.images, done.path) == (8, tmp_path / "m.onnx")
    assert done.relative < 1e-5
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"))
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    assert [given.name for given in session.get_inputs()] == ["images"]
    assert session.get_inputs()[0].shape == ["batch", 3, 32, 32]
    assert [given.name for given in session.get_outputs()] == ["probabilities", "logits"]
    for count in (1, 5):
        probabilities, logits = session.run(["probabilities", "logits"], {"images": pictures[:count].numpy()})
        wanted = expected(model, pictures[:count], 2.5)
        np.testing.assert_allclose(logits, wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(probabilities, wanted.softmax(1), rtol=1e-4, atol=1e-6)
    held = {key: json.loads(value) for key, value in session.get_modelmeta().custom_metadata_map.items()}
    assert held["classes"] == names
    assert (held["temperature"], held["image_size"], held["channels"]) == (2.5, [32, 32], 3)
    assert json.loads((tmp_path / "m.onnx.json").read_text())["classes"] == names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.json"]


def test_torch_program_with_one_image_and_five(small, pictures, tmp_path):
    export(small, pictures, tmp_path / "m.pt2", format="torch", temperature=0.5)
    held = {"surefoot.json": ""}
    program = torch.export.load(io.BytesIO((tmp_path / "m.pt2").read_bytes()), extra_files=held).module()
    for count in (1, 5):
        probabilities, logits = program(pictures[:count])
        assert torch.allclose(logits, expected(small, pictures[:count], 0.5), rtol=1e-4, atol=1e-5)
        assert torch.allclose(probabilities.sum(1), torch.ones(count))
    assert json.loads(held["surefoot.json"])["temperature"] == 0.5


def test_the_model_is_left_as_it_was(small, pictures, tmp_path):
    small.train()
    before = {name: value.clone() for name, value in small.state_dict().items()}
    export(small, pictures, tmp_path / "m.pt2", format="torch")
    assert small.training
    assert all(parameter.requires_grad for parameter in small.parameters())
    assert all(torch.equal(before[name], value) for name, value in small.state_dict().items())
    small.eval()


def test_a_file_that_differs_is_refused_and_not_written(small, pictures, tmp_path, monkeypatch):
    from surefoot.models import _export

    def wrong(content):
        return lambda images: tuple(part * 1.001 for part in _export.read_torch(content)(images))

    monkeypatch.setitem(_export.READERS, "torch", wrong)
    with pytest.raises(SurefootError, match=r"logits differ by 0\.001 of the largest, .* 0\.0001 is allowed"):
        export(small, pictures, tmp_path / "m.pt2", format="torch")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_exported(small, pictures, tmp_path, monkeypatch):
    with pytest.raises(UnknownName, match="Did you mean 'onnx'"):
        export(small, pictures, tmp_path / "m.onnx", format="onx")
    with pytest.raises(SurefootError, match=r"output must be a file \*\.pt2"):
        export(small, pictures, tmp_path / "m.onnx", format="torch")
    with pytest.raises(SurefootError, match="temperature must be positive and finite, got 0"):
        export(small, pictures, tmp_path / "m.onnx", temperature=0)
    ensemble = sf.objectives.RandomSelfEnsemble(noise_std=0.3, test_draws=2).predictor(small)
    with pytest.raises(SurefootError, match="draws at random when it predicts"):
        export(ensemble, pictures, tmp_path / "m.pt2", format="torch")

    class Branching(torch.nn.Module):
        def forward(self, images):
            return images.flatten(1)[:, :3] * (2 if float(images.sum()) > 0 else 1)

    with pytest.raises(SurefootError, match=r"^torch\.export cannot take this model: "):
        export(Branching(), pictures, tmp_path / "m.pt2", format="torch")
    monkeypatch.setattr("surefoot.models.arguments.NEEDED", ("onnx", "not_here"))
    with pytest.raises(SurefootError, match=r"needs not_here: pip install 'surefoot\[onnx\]'"):
        export(small, pictures, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
