"""The loss around an image, and curvature against predictions under noise."""

import math

import pytest
import torch
from torch import nn

from surefoot.corruptions import add_gaussian_noise
from surefoot.errors import SurefootError, UnknownName
from surefoot.geometry import accuracy_by_curvature, curvature_by_count, curvature_spread, loss_landscape, noisy_correct
from surefoot.geometry.curvature import directions
from surefoot.seeds import generator


def small_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 12), nn.Tanh(), nn.Linear(12, 4)).double()


def test_as_point_by_point(images):
    model, labels, images = small_net(), torch.arange(6) % 4, images.double()
    found = loss_landscape(model, images, labels, 2.0, 5, generator("landscape"), batch_size=7)
    along, across, norms = directions(model, images, labels, generator("landscape"), 7)
    assert found.offsets.tolist() == [-2, -1, 0, 1, 2]
    for number in range(6):
        point = images[number : number + 1].clone().requires_grad_()
        loss = nn.functional.cross_entropy(model(point), labels[number : number + 1])
        gradient = torch.autograd.grad(loss, point)[0][0]
        torch.testing.assert_close(along[number], gradient / gradient.norm())
        assert found.gradient_norm[number].item() == pytest.approx(gradient.norm().item()) == norms[number].item()
        assert found.loss[number, 2, 2].item() == pytest.approx(loss.item())
        for row, column in ((0, 0), (4, 1), (2, 3)):
            moved = images[number] + found.offsets[row] * along[number] + found.offsets[column] * across[number]
            there = nn.functional.cross_entropy(model(moved[None]), labels[number : number + 1])
            assert found.loss[number, row, column].item() == pytest.approx(there.item())
    assert (along * across).sum((1, 2, 3)).abs().max() < 1e-12
    torch.testing.assert_close(across.flatten(1).norm(dim=1), torch.ones(6, dtype=torch.float64))


def test_a_linear_model_is_flat_across_the_gradient():
    """Two classes: the loss depends on the gradient's direction alone."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 2)).double()
    images = torch.rand(3, 3, 2, 2, dtype=torch.float64)
    found = loss_landscape(model, images, torch.tensor([0, 1, 0]), resolution=7)
    torch.testing.assert_close(found.loss, found.loss[:, :, 3:4].expand(3, 7, 7))
    assert (found.loss.diff(dim=1) > 0).all()


def test_even_resolution_is_refused(images):
    with pytest.raises(SurefootError, match="resolution must be odd"):
        loss_landscape(small_net(), images.double(), torch.zeros(6, dtype=torch.long), resolution=4)


def test_the_same_generator_gives_the_same(images):
    model, labels, images = small_net(), torch.arange(6) % 4, images.double()
    first, second, third = (loss_landscape(model, images, labels, resolution=3, generator=generator(k)) for k in (1, 1, 2))
    assert torch.equal(first.loss, second.loss)
    assert not torch.equal(first.loss, third.loss)
    assert torch.equal(first.loss[:, 1, 1], third.loss[:, 1, 1])


def test_counts_of_right_predictions():
    """One pixel above or below a half: each noisy copy is right with a known probability."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[0.0], [1.0]]))
        model[1].bias.copy_(torch.tensor([0.5, 0.0]))
    images = torch.full((4000, 1, 1, 1), 0.56)
    labels = torch.ones(4000, dtype=torch.long)
    counts = noisy_correct(model, images, labels, level=0.06, draws=10)
    assert counts.min() >= 0
    assert counts.max() <= 10
    assert counts.double().mean().item() / 10 == pytest.approx(0.8413, abs=0.01)  # one deviation
    uniform = noisy_correct(model, images, labels, level=0.12, noise="uniform")
    assert uniform.double().mean().item() / 10 == pytest.approx(0.75, abs=0.01)
    assert noisy_correct(model, images[:5], labels[:5], level=0.0).tolist() == [10] * 5


def test_draws_do_not_depend_on_the_batch(images):
    model, labels = small_net().float(), torch.arange(6) % 4
    whole, parts = (noisy_correct(model, images, labels, 0.5, batch_size=size, seed=3) for size in (6, 4))
    assert torch.equal(whole, parts)
    assert not torch.equal(add_gaussian_noise(images, 0.5, seed=1), add_gaussian_noise(images, 0.5, seed=2))
    with pytest.raises(UnknownName, match="Did you mean 'gaussian'"):
        noisy_correct(model, images, labels, noise="gausian")


def test_accuracy_of_the_lowest_curvatures():
    curvature = torch.tensor([3.0, 1.0, 2.0, 5.0, 4.0])
    correct = torch.tensor([1.0, 1.0, 0.5, 0.0, 0.0])
    found = accuracy_by_curvature(curvature, correct, (0.2, 0.4, 0.6, 1.0))
    assert found.counts.tolist() == [1, 2, 3, 5]
    assert found.values.tolist() == pytest.approx([1, 0.75, 2.5 / 3, 0.5])
    torch.manual_seed(0)
    values, right = torch.rand(201, dtype=torch.float64), torch.rand(201) < 0.5
    shares = [0.1, 0.3, 0.9]
    close = accuracy_by_curvature(values, right, shares)
    for share, count in zip(shares, close.counts, strict=True):  # the paper's quantile
        assert abs(int((values < values.quantile(share)).sum()) - int(count)) <= 1
    assert accuracy_by_curvature(values, right).counts.tolist() == [math.ceil(201 * k / 10) for k in range(1, 11)]


def test_curvature_by_the_number_of_right_predictions():
    curvature, counts = torch.tensor([8.0, 6.0, 2.0, 1.0, 0.0]), torch.tensor([0, 0, 1, 3, 3])
    found = curvature_by_count(curvature, counts, draws=3)
    assert found.counts.tolist() == [2, 1, 0, 2]
    assert found.values[[0, 1, 3]].tolist() == [7, 2, 0.5]
    assert found.values[2].isnan()
    expected = torch.corrcoef(torch.tensor([[0.0, 1.0, 3.0], [7.0, 2.0, 0.5]]))[0, 1]
    assert found.correlation == pytest.approx(expected.item())
    every = torch.corrcoef(torch.stack([counts.float(), curvature]))[0, 1]
    assert found.image_correlation == pytest.approx(every.item())
    with pytest.raises(SurefootError, match="whole numbers from 0 to 2"):
        curvature_by_count(curvature, counts, draws=2)


def test_two_groups_always_lie_on_a_line_and_have_no_correlation():
    found = curvature_by_count(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 2, 2]), draws=2)
    assert found.values[[0, 2]].tolist() == [3, 1.5]
    assert math.isnan(found.correlation)
    assert found.image_correlation == pytest.approx(-math.sqrt(3) / 2)
    three = curvature_by_count(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 2]), draws=2)
    assert three.correlation == pytest.approx(-0.5)


def test_spread_of_the_lowest():
    found = curvature_spread({"a": torch.arange(10.0), "b": torch.ones(3)}, 0.5)
    assert found.names == ("a", "b")
    assert found.values[0].tolist() == [0, 1, 2, 3, 4]
    assert found.values[1].tolist() == [1] * 5


def test_small_whole_numbers_are_labels(smooth, points, labels):
    expected = loss_landscape(smooth, points, labels, resolution=3, generator=generator(0)).loss
    found = loss_landscape(smooth, points, labels.int(), resolution=3, generator=generator(0)).loss
    assert torch.equal(found, expected)
