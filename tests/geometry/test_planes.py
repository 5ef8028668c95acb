"""Two- and three-dimensional representation spaces: grids, losses, angles, paths, starts and snapshots."""

import math

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.attacks import fgsm, pgd
from surefoot.errors import SurefootError
from surefoot.geometry import (
    attack_path,
    class_targets,
    confidence_angles,
    far_features,
    far_regions,
    loss_field,
    minimum_loss_points,
    observed_features,
    plane_snapshots,
    representation_plane,
)


def flat(dimensions=2, classes=4):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 16), nn.Tanh(), nn.Linear(16, dimensions), nn.Linear(dimensions, classes))
    return net.double()


MIXED = ((2, None, 1.0), (1, None, 1.0), (2, 1, 0.7))


@pytest.mark.parametrize("dimensions", [2, 3])
def test_grid_against_the_head(images, dimensions):
    model, labels = flat(dimensions), torch.arange(6) % 4
    plane = representation_plane(model.train(), images.double(), labels, extent=2.0, resolution=5)
    assert model.training
    assert plane.axis.tolist() == [-2, -1, 0, 1, 2]
    assert plane.classes.shape == plane.confidence.shape == (5,) * dimensions
    places = [(0, 3, 2), (4, 1, 0), (2, 2, 2)]
    for place in places:
        cell = place[:dimensions]
        p = model[-1](plane.axis[list(cell)]).softmax(0)
        assert int(plane.classes[cell]) == int(p.argmax())
        assert float(plane.confidence[cell]) == pytest.approx(p.max().item())
    torch.testing.assert_close(plane.features, model[:4](images.double()).detach())
    assert torch.equal(plane.predicted, model(images.double()).argmax(1))
    minima = minimum_loss_points(model[-1])
    torch.testing.assert_close(plane.centres, minima.points)
    assert plane.converged.tolist() == minima.converged.tolist()
    assert plane.means.shape == (4, dimensions)


def test_extent_holds_the_features(images):
    plane = representation_plane(flat(), images.double(), torch.zeros(6, dtype=torch.long))
    assert plane.axis.max().item() == pytest.approx(1.1 * plane.features.abs().max().item())
    assert len(plane.axis) == 201


def test_a_space_that_cannot_be_drawn(images):
    with pytest.raises(SurefootError, match="2 or 3 feature dimensions"):
        representation_plane(flat(5), images.double(), torch.zeros(6, dtype=torch.long))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_loss_and_gradient_by_autograd(smoothing):
    head = flat()[-1]
    field = loss_field(head, 2, 3.0, smoothing, resolution=7, arrows=3)
    for row, column in ((0, 0), (5, 2), (3, 3)):
        point = torch.stack([field.axis[row], field.axis[column]])[None]
        loss = nn.functional.cross_entropy(head(point), torch.tensor([2]), label_smoothing=smoothing)
        assert field.loss[row, column].item() == pytest.approx(loss.item())
    assert field.places.shape == field.gradients.shape == (9, 2)
    for place, gradient in zip(field.places, field.gradients, strict=True):
        point = place[None].clone().requires_grad_()
        loss = nn.functional.cross_entropy(head(point), torch.tensor([2]), label_smoothing=smoothing)
        torch.testing.assert_close(torch.autograd.grad(loss, point)[0][0], gradient)
    targets = class_targets(4, smoothing)
    torch.testing.assert_close(field.centre, minimum_loss_points(head, targets).points[2])
    if smoothing:
        assert field.converged
        at_centre = -(head(field.centre[None]).log_softmax(1)[0] @ targets[2])
        assert float(at_centre.detach()) <= float(field.loss.min())


def test_the_loss_of_two_classes():
    """Mixup's target: the loss is the mean of the two, by their shares."""
    head = flat()[-1]
    first, second, both = (
        loss_field(head, label, 3.0, resolution=7, other=other, share=share) for label, other, share in MIXED
    )
    torch.testing.assert_close(both.loss, 0.7 * first.loss + 0.3 * second.loss)
    torch.testing.assert_close(both.gradients, 0.7 * first.gradients + 0.3 * second.gradients)


def test_the_soft_minimum_is_nearer_the_origin():
    """Fig. 5: the white cross."""
    head = flat()[-1]
    hard, soft = (loss_field(head, 1, 40.0, smoothing, 81) for smoothing in (0.0, 0.1))

    def lowest(field):
        place = int(field.loss.argmin())
        return field.axis[[place // 81, place % 81]].norm().item()

    assert lowest(soft) < 0.9 * lowest(hard)


def test_angle_by_hand():
    """Class 0 to the right, 1 to the left: features at -30, 0 and 50 degrees are sure, one at 80 is not."""
    head = nn.Linear(2, 2, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        head.bias.zero_()
    turns = torch.deg2rad(torch.tensor([50.0, 0.0, -30.0, 80.0, -89.0], dtype=torch.float64))
    features = 5 * torch.stack([turns.cos(), turns.sin()], 1)
    found = confidence_angles(head, features)
    assert found.sides[0].tolist() == pytest.approx([-30, 50])
    assert found.places.tolist() == [[2, 0], [-1, -1]]
    assert found.values[0].item() == pytest.approx(80)
    assert math.isnan(found.values[1])
    # nearer the origin a feature must point better to be sure
    assert confidence_angles(head, 0.6 * features).values[0].item() == pytest.approx(30)
    with pytest.raises(SurefootError, match="2 dimensions"):
        confidence_angles(nn.Linear(3, 2), torch.randn(4, 3))


def test_path_ends_where_the_attack_does(images):
    model, labels = flat(), torch.arange(6) % 4
    images = images.double()
    path = attack_path(model, images, labels, batch_size=4)
    assert path.features.shape == (8, 6, 2)
    torch.testing.assert_close(path.features[0], observed_features(model, images).features)
    for steps in (3, 7):
        attacked = pgd(model, images, labels, 8 / 255, steps, 2 / 255, random_start=False)
        torch.testing.assert_close(path.features[steps], observed_features(model, attacked).features)
    assert torch.equal(path.predicted[-1], model(attacked).argmax(1))
    one = attack_path(model, images, labels, steps=1, step_size=8 / 255)
    torch.testing.assert_close(one.features[1], observed_features(model, fgsm(model, images, labels)).features)
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


def test_far_regions_meet_far_from_the_origin(images):
    model = flat(classes=10)
    far_regions(model, images.double())
    at_origin = model[-1](torch.zeros(1, 2, dtype=torch.float64))
    assert at_origin.argmax().item() == 0
    circle = torch.linspace(0, 2 * math.pi, 60, dtype=torch.float64)
    ring = torch.stack([circle.cos(), circle.sin()], 1)
    assert len(model[-1](10 * ring).argmax(1).unique()) == 1  # one class around the origin
    assert len(model[-1](100 * ring).argmax(1).unique()) > 2
    with pytest.raises(SurefootError, match="10 classes"):
        far_regions(flat(), images.double())


def test_far_features_move_the_features_and_not_the_head(images):
    model = flat(classes=10).eval()
    images = images.double()
    head = model[-1].weight.detach().clone()
    before = (observed_features(model, images).features - 8).norm(dim=1).mean()
    far_features(model, images, target=8.0, learning_rate=0.05, epochs=20, batch_size=4)
    after = (observed_features(model, images).features - 8).norm(dim=1).mean()
    assert after < 0.5 * before
    assert torch.equal(model[-1].weight, head)
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("objective", ["CrossEntropy", "TRADES"])  # the second asks the model in evaluation mode at each step
def test_snapshots_of_a_training(digits, objective):
    batch = next(digits.test.batches(40))
    pixels = digits.channels * digits.image_size[0] * digits.image_size[1]
    net = nn.Sequential(nn.Flatten(), nn.Linear(pixels, 16), nn.BatchNorm1d(16), nn.Linear(16, 2), nn.Linear(2, 10))
    model = sf.Classifier(net, 0.5, 0.5, digits.image_size, digits.channels)
    with plane_snapshots(model, batch.images, batch.labels, every=2, resolution=9) as planes:
        sf.fit(model, getattr(sf.objectives, objective)(), digits, epochs=2, learning_rate=0.01, seed=0, progress=False)
    assert sorted(planes) == [0, 2]
    last = representation_plane(model, batch.images, batch.labels, resolution=9)
    torch.testing.assert_close(planes[2].features, last.features)
    torch.testing.assert_close(planes[2].weights, last.weights)
    assert not torch.allclose(planes[0].weights, last.weights)
    assert not model._forward_pre_hooks
