"""Projected gradient descent against what is known: closed forms, a plain loop, and laws of strength."""

import pytest
import torch
from attack_nets import linear_net, pictures, small_net
from torch import nn
from torch.nn import functional as F

from surefoot.attacks import evaluate, fgsm, pgd
from surefoot.errors import SurefootError, UnknownName
from surefoot.objectives.noisy import NoisyEnsemble
from surefoot.seeds import generator
from surefoot.views import GaussianNoise


@pytest.mark.parametrize("loss", ["ce", "margin"])
def test_the_best_point_of_a_linear_model(loss):
    """Two classes, away from 0 and 1: x + eps sign(w_other - w_label) in L-inf, and x + eps (w_other - w_label) / |.| in L2."""
    net = linear_net().double()
    images = torch.rand(8, 3, 4, 4, dtype=torch.float64) * 0.4 + 0.3
    labels = torch.arange(8) % 2
    weight = net[1].weight.detach()
    away = torch.where(labels.bool().unsqueeze(1), weight[0] - weight[1], weight[1] - weight[0]).view_as(images)
    found = pgd(net, images, labels, 0.1, steps=20, loss=loss, generator=generator(0))
    assert (found - (images + 0.1 * away.sign())).abs().max() < 1e-6
    assert (fgsm(net, images, labels, 0.1) - (images + 0.1 * away.sign())).abs().max() < 1e-6
    unit = away / away.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    found = pgd(net, images, labels, 0.2, steps=100, step_size=0.1, norm="l2", loss=loss, generator=generator(0))
    assert (found - (images + 0.2 * unit)).abs().max() < 1e-6


def test_the_best_point_in_the_corner_of_the_range():
    """Clipping to [0, 1] after the step is still the best that the box allows for a linear model."""
    net, images, labels = linear_net().double(), torch.rand(8, 3, 4, 4).double().round(), torch.arange(8) % 2
    weight = net[1].weight.detach()
    away = torch.where(labels.bool().unsqueeze(1), weight[0] - weight[1], weight[1] - weight[0]).view_as(images)
    best = (images + 0.3 * away.sign()).clamp(0, 1)
    assert (pgd(net, images, labels, 0.3, steps=10, generator=generator(0)) - best).abs().max() < 1e-6


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_plain_loop_gives_the_same_images(norm):
    net, images, eps, steps, step = small_net(), pictures(), 0.1, 6, 0.03
    labels = torch.arange(len(images)) % 5
    points = start = pgd(net, images, labels, eps, 1, 0.0, norm, generator=generator(3))  # no step: the random start
    assert not torch.equal(start, images)
    for _ in range(steps):
        points = points.detach().requires_grad_()
        F.cross_entropy(net(points), labels, reduction="sum").backward()
        slope = points.grad
        if norm == "linf":
            points = points.detach() + step * slope.sign()
            points = torch.max(torch.min(points, images + eps), images - eps).clamp(0, 1)
        else:
            points = points.detach() + step * slope / slope.flatten(1).norm(dim=1)[:, None, None, None]
            change = points - images
            change = change * (eps / change.flatten(1).norm(dim=1)).clamp(max=1)[:, None, None, None]
            points = (images + change).clamp(0, 1)
    found = pgd(net, images, labels, eps, steps, step, norm, generator=generator(3))
    assert torch.allclose(found, points, atol=1e-6)
    assert (found == points).float().mean() > (0.99 if norm == "linf" else 0)
    net.zero_grad()


def robust(net, images, labels, **options):
    found = evaluate(net, images, labels, lambda *given: pgd(*given, generator=generator(1), **options))
    return found.robust_accuracy


@pytest.mark.parametrize("seed", range(3))
def test_more_is_never_weaker(seed):
    net, images = small_net(seed=seed), pictures(96, seed=seed)
    labels = net(images).argmax(1)
    for axis, values in {"eps": (0.0, 0.01, 0.02, 0.04, 0.08), "steps": (1, 3, 10, 30), "restarts": (1, 2, 5)}.items():
        left = [robust(net, images, labels, **{"eps": 0.02, axis: value}) for value in values]
        assert left == sorted(left, reverse=True), (axis, left)
        if axis == "eps":
            assert left[0] == 1
            assert left[-1] < 0.7
    assert robust(net, images, labels, eps=0.02, early_stop=True) <= robust(net, images, labels, eps=0.02)


class Counted(nn.Module):
    """Counts images that pass."""

    def __init__(self):
        super().__init__()
        self.net, self.images, self.passes = small_net(), 0, 0

    def forward(self, images):
        self.passes, self.images = self.passes + 1, self.images + len(images)
        return self.net(images)


def test_passes():
    """As many as there are steps; early stopping drops images, and a restart costs one more pass on those that stand."""
    images = pictures(64)
    labels = small_net()(images).argmax(1)
    net = Counted()
    pgd(net, images, labels, 0.05, steps=7, generator=generator(0))
    assert (net.passes, net.images) == (7, 7 * 64)
    net = Counted()
    stopped = pgd(net, images, labels, 0.05, steps=7, early_stop=True, generator=generator(0))
    assert net.images < 0.6 * 7 * 64
    assert (net.net(stopped).argmax(1) != labels).float().mean() > 0.5
    net = Counted()
    pgd(net, images, labels, 0.05, steps=7, restarts=2, generator=generator(0))
    assert net.images <= 8 * 64 + 8 * 64
    assert net.passes == 16


def test_an_image_stops_where_it_is_first_wrong():
    """On a linear model the path is a straight line: the stopped point is the first step behind the boundary."""
    net = linear_net().double()
    images = torch.full((1, 3, 4, 4), 0.5, dtype=torch.float64)
    label = net(images).argmax(1)
    path = [pgd(net, images, label, 0.4, n, 0.01, random_start=False) for n in range(1, 40)]
    first = next(points for points in path if net(points).argmax(1) != label)
    found = pgd(net, images, label, 0.4, 40, 0.01, random_start=False, early_stop=True)
    assert torch.equal(found, first)


def test_expectation_over_draws(caplog):
    """The gradient of a randomised model is averaged: with many draws PGD finds the closed form that one draw misses."""
    torch.manual_seed(0)
    net = linear_net()
    with torch.no_grad():
        net[1].weight.copy_(torch.sign(net[1].weight) * 0.02)
    noisy = NoisyEnsemble(net, Flipping(), 1)
    images, labels = torch.full((6, 3, 4, 4), 0.5), torch.zeros(6, dtype=torch.long)
    away = (net[1].weight[1] - net[1].weight[0]).detach().view(1, 3, 4, 4)
    best = images + 0.1 * away.sign()

    def distance(eot):
        found = pgd(noisy, images, labels, 0.1, 1, 0.1, random_start=False, eot=eot)
        return float((found - best).abs()[:, away[0] != 0].mean())

    assert distance(101) < 0.5 * distance(1)
    with pytest.raises(SurefootError, match="eot must be at least 1, got 0"):
        distance(0)


class Flipping:
    """Mirrors each pixel's meaning with a chance of 0.4."""

    def __call__(self, images):
        return torch.where(torch.rand_like(images) < 0.4, 1 - images, images)


def test_a_deterministic_attack_on_a_randomised_model_is_told(caplog):
    images, labels = pictures(2), torch.tensor([0, 1])
    for attack, remedy in (
        (lambda m: fgsm(m, images, labels), "use pgd with eot=10"),
        (lambda m: pgd(m, images, labels), "use eot=10"),
    ):
        caplog.clear()
        model = NoisyEnsemble(small_net(), GaussianNoise(0.1), 2)
        attack(model)
        attack(model)
        assert caplog.messages == [
            f"NoisyEnsemble draws anew at every call, and this attack sees one draw at a time: {remedy}."
        ]
    caplog.clear()
    pgd(NoisyEnsemble(small_net(), GaussianNoise(0.1), 2), images, labels, eot=2)
    pgd(small_net(), images, labels)
    assert caplog.messages == []


def test_options_are_checked():
    net, images, labels = linear_net(), torch.rand(1, 3, 4, 4), torch.tensor([0])
    for options, message in (
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"step_size": -1}, "step_size must be at least 0, got -1"),
        ({"restarts": 0}, "restarts must be at least 1, got 0"),
        ({"restarts": 2, "random_start": False}, "restarts must be 1 without random_start, got 2"),
    ):
        with pytest.raises(SurefootError, match=message):
            pgd(net, images, labels, **options)
    with pytest.raises(UnknownName, match="Unknown loss 'cee'. Did you mean 'ce'?"):
        pgd(net, images, labels, loss="cee")
    assert pgd(net, images[:0], labels[:0]).shape == (0, 3, 4, 4)
