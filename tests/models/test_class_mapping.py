"""Outputs for classes: masked logits, sums, WordNet ids, by hand."""

import json

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.models.class_mapping import imagenet_names, with_classes
from surefoot.models.classifier import Classifier


@pytest.fixture
def model():
    """A classifier with five outputs."""
    torch.manual_seed(0)
    return sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(12, 5)), 0, 1, 2).eval()


@pytest.fixture
def pixels():
    return torch.rand(4, 3, 2, 2, generator=torch.Generator().manual_seed(1))


def mapped(model, names, classes=None, output_names=()):
    return with_classes(model, names, (2, 2), 3, classes, output_names)


def test_as_many_outputs_as_classes_are_left_alone(model):
    assert mapped(model, "abcde") == (model, ())


def test_masked_logits_are_the_chosen_columns_and_features_stay(model, pixels):
    chosen, (line,) = mapped(model, ("x", "y"), "3,1")
    assert isinstance(chosen, Classifier)
    assert torch.allclose(chosen(pixels), model(pixels)[:, [3, 1]], atol=1e-6)
    assert torch.equal(chosen.features(pixels), model.features(pixels))
    assert line == (
        "The 2 classes of the data are scored on the model's 5 outputs as given; "
        "the other 3 get no probability (masked logits)."
    )


def test_several_outputs_are_summed(model, pixels, tmp_path):
    (tmp_path / "classes.json").write_text(json.dumps({"pets": ["cat", 1], "rest": [2, 3, 4]}))
    summed, (line,) = mapped(model, ("pets", "rest"), tmp_path / "classes.json", ("cat", "dog", "eel", "fox", "gnu"))
    probabilities = model(pixels).softmax(1)
    wanted = torch.stack([probabilities[:, :2].sum(1), probabilities[:, 2:].sum(1)], 1)
    assert torch.allclose(summed(pixels).softmax(1), wanted, atol=1e-6)
    assert "summed by class" in line
    assert "masked" not in line


def test_a_file_of_lines_may_name_a_class_twice(model, pixels, tmp_path):
    (tmp_path / "classes.csv").write_text("pets,0\npets,1\nrest,4\n")
    out, _ = mapped(model, ("pets", "rest"), tmp_path / "classes.csv")
    logits = model(pixels)
    assert torch.allclose(out(pixels)[:, 0], torch.logaddexp(logits[:, 0], logits[:, 1]), atol=1e-6)
    assert torch.equal(out(pixels)[:, 1], logits[:, 4])


def test_names_are_matched_without_being_asked(model, pixels):
    out, (line,) = mapped(model, ("Red_Fox", "cat"), None, ("cat", "dog", "eel", "red fox", "gnu"))
    assert torch.allclose(out(pixels), model(pixels)[:, [3, 0]], atol=1e-6)
    assert "by name" in line


def test_imagenet_is_known_by_wordnet_id_and_by_word():
    torch.manual_seed(0)
    model = sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(12, 1000)), 0, 1, 2).eval()
    assert len(imagenet_names()) == 1000
    pixels = torch.rand(2, 3, 2, 2)
    out, _ = mapped(model, ("n01440764", "n01443537", "goldfinch"))
    assert torch.allclose(out(pixels), model(pixels)[:, [0, 1, 11]], atol=1e-6)
    with pytest.raises(SurefootError, match="'crane' may be any of the outputs 134, 517: give the number"):
        mapped(model, ("n01440764", "crane"))


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        (None, "5 outputs, and the data have 2 classes: say which is which with classes .--classes.*does not name its outputs"),
        ("1", "an output for each of 2 classes, got 1"),
        ("1,9", "must be in 0 to 4, got 9"),
        ("1,1", "Classes 'x' and 'y' have the same output 1"),
        ({"x": 1, "yy": 2}, "no output for class 'y', did you mean 'yy'"),
        ("names", "does not name its outputs: give their numbers"),
    ],
)
def test_refusals(model, classes, said):
    with pytest.raises(SurefootError, match=said):
        mapped(model, ("x", "y"), classes)


def test_an_audit_scores_fewer_classes(model):
    """Through the front door: accuracy is that of the chosen columns."""
    images = (torch.rand(30, 3, 2, 2, generator=torch.Generator().manual_seed(2)) * 255).round().byte()
    labels = torch.arange(30) % 2
    data = sf.load_data((images, labels))
    audit = sf.audit(model, data, classes=[3, 1], only=["sensitivity"], progress=False)
    wanted = (model(images / 255)[:, [3, 1]].argmax(1) == labels).double().mean()
    assert float(audit.calibration.accuracy) == pytest.approx(float(wanted))
    assert any("masked logits" in line for line in audit.subject["model"])
