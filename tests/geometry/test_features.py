"""Feature statistics against loops."""

import math

import pytest
import torch
from torch import nn

from surefoot.attacks import evaluate, pgd
from surefoot.errors import SurefootError
from surefoot.geometry import feature_displacement, feature_statistics, observed_features, success_by_bin


def test_by_hand():
    features = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1.0, 1.0]])
    centres = torch.tensor([[10.0, 0.0], [0.0, -2.0]])
    found = feature_statistics(features, centres, torch.tensor([0, 0, 1]))
    assert found.rms.tolist() == pytest.approx([5 / math.sqrt(2), 0, 1])
    assert found.cosine.tolist() == pytest.approx([0.6, 0, -math.sqrt(0.5)])
    assert found.rms_mean == pytest.approx((5 / math.sqrt(2) + 1) / 3)
    values = [0.6, 0, -math.sqrt(0.5)]
    mean = sum(values) / 3
    assert found.cosine_std == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in values) / 3))


def test_batches_and_precision_change_nothing():
    features, centres, labels = torch.randn(50, 7), torch.randn(4, 7), torch.randint(4, (50,))
    whole, parts = (feature_statistics(features, centres, labels, size) for size in (50, 8))
    fine = feature_statistics(features.double(), centres.double(), labels)
    assert torch.equal(whole.cosine, parts.cosine)
    torch.testing.assert_close(whole.cosine, fine.cosine.float())
    torch.testing.assert_close(fine.rms, features.double().square().mean(1).sqrt())


def test_a_class_without_a_centre_is_left_out():
    centres = torch.tensor([[1.0, 0.0], [math.nan, math.nan]])
    found = feature_statistics(torch.tensor([[2.0, 0.0], [1.0, 0.0]]), centres, torch.tensor([0, 1]))
    assert found.cosine_mean == 1
    assert found.cosine.isnan().tolist() == [False, True]


def test_wrong_shape():
    with pytest.raises(SurefootError, match="features must be images x 3 dimensions"):
        feature_statistics(torch.randn(4, 2), torch.randn(5, 3), torch.zeros(4, dtype=torch.long))


def test_success_by_bin_by_hand():
    values = torch.tensor([0.0, 0.1, 0.6, 0.9, 1.0])
    correct = torch.tensor([True, True, True, False, True])
    broken = torch.tensor([True, False, False, False, True])
    found = success_by_bin(values, broken, correct, bins=4)
    assert found.edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert found.counts.tolist() == [2, 0, 1, 2]
    assert found.values[[0, 2, 3]].tolist() == [0.5, 0, 1]
    assert found.values[1].isnan()


def test_success_counts_only_images_that_were_right():
    with pytest.raises(SurefootError, match="broken must be only images that were right before"):
        success_by_bin(torch.rand(2), torch.tensor([True, False]), torch.tensor([False, True]))


def test_bins_add_up_to_the_success_of_an_attack():
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
    images = torch.rand(96, 3, 4, 4)
    labels = torch.where(torch.rand(96) < 0.8, model(images).argmax(1), 0)
    result = evaluate(model, images, labels, "fgsm")
    values = torch.rand(96)
    assert success_by_bin(values, result.broken, result.clean.correct, 1).values.item() == pytest.approx(result.success_rate)
    found = success_by_bin(values, result.broken, result.clean.correct, 5)
    assert int(found.counts.sum()) == 96
    assert 0 < result.success_rate < 1
    assert found.values.min() <= result.success_rate <= found.values.max()


def test_displacement_of_a_linear_model():
    """f = A x: FGSM moves the feature by eps A sign(gradient)."""
    torch.manual_seed(0)
    space, head = nn.Linear(12, 5, bias=False), nn.Linear(5, 3)
    model = nn.Sequential(nn.Flatten(), space, head).double().train()
    images = 0.2 + 0.6 * torch.rand(9, 3, 2, 2, dtype=torch.float64)
    labels = torch.arange(9) % 3
    found = feature_displacement(model, images, labels, batch_size=4)
    for number in range(9):
        p = model(images[number : number + 1]).softmax(1)[0].detach()
        p[labels[number]] -= 1
        move = 8 / 255 * space.weight.detach() @ (p @ head.weight @ space.weight).sign().detach()
        assert float(found.values[number]) == pytest.approx(float(move.square().mean().sqrt()))
        size = space(images[number].flatten()).detach().square().mean().sqrt()
        assert float(found.feature_rms[number]) == pytest.approx(float(size))
    pairs = torch.stack([found.feature_rms, found.values])
    assert found.correlation == pytest.approx(float(torch.corrcoef(pairs)[0, 1]))
    assert found.mean == pytest.approx(float(found.values.mean()))
    assert model.training
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    still = feature_displacement(model, images, labels, attack=lambda m, x, y: pgd(m, x, y, eps=0.0))
    assert float(still.values.max()) == 0
    assert math.isnan(still.correlation)


def test_nothing_to_look_at(images):
    with pytest.raises(SurefootError, match="images must be at least one"):
        observed_features(nn.Sequential(nn.Flatten(), nn.Linear(768, 3)), images[:0])
    nothing = torch.tensor([math.nan])
    with pytest.raises(SurefootError, match="finite for at least one image"):
        success_by_bin(nothing, torch.tensor([False]), torch.tensor([True]))


def test_observed_features_of_any_module(images):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)).train()
    before = model[1].running_mean.clone()
    found = observed_features(model, images, batch_size=4)
    assert model.training
    assert torch.equal(model[1].running_mean, before)
    model.eval()
    torch.testing.assert_close(found.features, model[:4](images))
    torch.testing.assert_close(found.logits, model(images))
