"""Models that do what a model should not: a line that names the model and what it did, and numbers that are still right."""

import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.auditing import depths
from surefoot.data.subsets import choose
from surefoot.errors import SurefootError
from surefoot.models.classifier import answers
from surefoot.models.last_layer import given_copies
from surefoot.models.preflight import preflight
from surefoot.types import Predictions


class Behaves(nn.Module):
    def __init__(self, act):
        super().__init__()
        torch.manual_seed(0)
        self.net, self.act = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)), act

    def forward(self, images):
        return self.act(self.net, images)


def halved(net, images):
    images.data.mul_(0.5)
    return net(images)


def leave(net, images):
    sys.exit(3)


def fail(net, images):
    raise KeyError("weights")


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda net, images: net(images)[:-1], r"images x classes for 6 images, got \(5, 10\)"),
        (lambda net, images: net(images).long(), "must be floating point, got torch.int64"),
        (lambda net, images: net(images).to(torch.complex64), "must be floating point, got torch.complex64"),
        (lambda net, images: [net(images)], "images x classes for 6 images, got 'list'"),
        (leave, "The model, Behaves, called exit on 6 images"),
        (fail, "The model, Behaves, failed .KeyError: 'weights'. on 6 images"),
    ],
)
def test_what_a_model_does_is_said(act, said):
    images = torch.rand(6, 3, 32, 32)
    with pytest.raises(SurefootError, match=said):
        answers(Behaves(act), images)
    with pytest.raises(SurefootError):
        preflight(Behaves(act), images, torch.arange(6), num_classes=10)


def test_no_memory_is_not_the_models_fault():
    def full(net, images):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    with pytest.raises(RuntimeError, match="can't allocate"):
        answers(Behaves(full), torch.rand(2, 3, 32, 32))


def test_preflight_sees_a_model_that_changes_its_input_or_draws():
    images, labels = torch.rand(6, 3, 32, 32), torch.arange(6)
    before = images.clone()

    def names(act):
        return [finding.name for finding in preflight(Behaves(act), images, labels, num_classes=10)]

    assert "changed-input" in names(halved)
    assert torch.equal(images, before)
    assert "random" in names(lambda net, given: net(given) + torch.randn(len(given), 10))
    assert not {"random", "changed-input"} & set(names(lambda net, given: net(given)))


def test_an_audit_of_a_model_that_changes_its_input(digits):
    """The numbers are those of the same model that keeps its hands off: it is given a copy."""
    data = replace(digits, test=choose(digits.test, 60, 0))
    small = depths.Depth("small", {"attacks": {"names": ("pgd-weak",), "max_images": 20}})
    options = {"depth": small, "progress": False}
    changing = sf.audit(Behaves(halved), data, **options)
    plain = sf.audit(Behaves(lambda net, images: net(images * 0.5)), data, **options)
    assert "changed-input" in [finding.name for finding in changing.preflight]
    assert changing.calibration.accuracy == plain.calibration.accuracy
    assert changing.attacks["pgd-weak"].success_rate == plain.attacks["pgd-weak"].success_rate


def test_copies_are_given_only_inside():
    model, images = Behaves(halved), torch.rand(2, 3, 32, 32)
    before = images.clone()
    with given_copies(model):
        model(images)
    assert torch.equal(images, before)
    model(images)
    assert torch.equal(images, 0.5 * before)


@pytest.mark.parametrize(
    ("logits", "labels", "said"),
    [
        (torch.tensor([[0.0, torch.nan]]), [0], "logits must be finite; 1 of 1 images"),
        (torch.zeros(1, 2).to(torch.float8_e4m3fn), [0], "floating point of 16, 32 or 64 bits"),
        (torch.tensor([[0.0, 1e300]], dtype=torch.float64), [0], "within single precision, got 1e\\+300"),
        (torch.zeros(1, 2), [2], "labels must be in 0 to 1, got 2 to 2"),
        (torch.zeros(2, 2), [0], "labels must be one for each of 2 images"),
    ],
)
def test_predictions_are_refused_where_they_are_given(logits, labels, said):
    for make in (Predictions, Predictions.from_logits):
        with pytest.raises(SurefootError, match=said):
            make(logits, torch.tensor(labels))
