"""APGD piece by piece: losses and checkpoints by hand, the L1 projection by bisection, linear models in closed form."""

import math

import hypothesis.strategies as st
import pytest
import torch
from attack_nets import linear_net, pictures, small_net
from hypothesis import given, settings
from torch import nn

from surefoot.attacks import apgd, evaluate, fab, fast_strong, square
from surefoot.attacks._apgd import Ascent, checkpoints
from surefoot.attacks.apgd_l1 import SparseAscent
from surefoot.attacks.losses import dlr, likely_targets, probability_margin, targeted_dlr
from surefoot.attacks.norms import Ball
from surefoot.errors import SurefootError, UnknownName
from surefoot.seeds import generator


def test_the_difference_of_logits_ratio_by_hand():
    logits = torch.tensor([[3.0, 1.0, 2.0, -1.0], [0.5, 4.0, 1.0, 2.5]], dtype=torch.float64)
    labels, targets = torch.tensor([0, 3]), torch.tensor([1, 0])
    assert dlr(logits, labels).tolist() == pytest.approx([-(3 - 2) / (3 - 1), -(2.5 - 4) / (4 - 1)])
    by_hand = [-(3 - 1) / (3 - (1 - 1) / 2), -(2.5 - 0.5) / (4 - (1 + 0.5) / 2)]
    assert targeted_dlr(logits, labels, targets).tolist() == pytest.approx(by_hand)
    assert torch.allclose(dlr(7 * logits + 3, labels), dlr(logits, labels))  # neither scale nor shift changes it
    p = logits.softmax(1)
    assert probability_margin(logits, labels).tolist() == pytest.approx([float(p[0, 2] - p[0, 0]), float(p[1, 1] - p[1, 3])])


def test_with_few_classes_the_numerators_stand_in():
    two, three = torch.tensor([[3.0, 1.0]]), torch.tensor([[3.0, 1.0, 2.0]])
    zero, one = torch.tensor([0]), torch.tensor([1])
    assert dlr(two, zero).tolist() == targeted_dlr(two, zero, one).tolist() == [-2]
    assert dlr(three, zero).tolist() == [-0.5]
    assert targeted_dlr(three, zero, one).tolist() == [-2]
    assert likely_targets(three, zero, 9).tolist() == [[2, 1]]
    assert likely_targets(torch.arange(12.0)[None], torch.tensor([11]), 9).tolist() == [list(range(10, 1, -1))]


@pytest.mark.parametrize("iterations", [1, 5, 10, 37, 100, 1000])
def test_checkpoints_are_those_of_the_paper(iterations):
    """p_0 = 0, p_1 = 0.22, p_(j+1) = p_j + max(p_j - p_(j-1) - 0.03, 0.06), w_j = ceil(p_j N)."""
    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    expected = {math.ceil(round(share * iterations, 6)) for share in shares[1:-1]}
    assert checkpoints(iterations) == sorted(expected)
    assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]


def ascent(losses, **known):
    """Images that are somewhere on their way: only losses and counts matter here."""
    count = len(losses)
    points = torch.zeros(count, 1, 1, 1)
    state = Ascent.begin(Ball("linf", 1.0), torch.arange(count), points, points + 0.3, points + 5, torch.tensor(losses))
    for name, value in known.items():
        setattr(state, name, torch.tensor(value))
    return state


def test_steps_are_halved_where_too_few_climbed_or_nothing_improved():
    """Between 22 and 41 lie 19 steps: 14 that climb are fewer than 0.75 of them, 15 are not."""
    state = ascent([1.0, 1.0, 1.0, 1.0], rises=[14.0, 15.0, 19.0, 19.0], checked_loss=[0.5, 0.5, 1.0, 1.0])
    state.halved = torch.tensor([False, False, False, True])  # the last was just halved: it gets time to improve
    state.best, state.best_loss = state.best + 0.4, torch.full((4,), 1.0)
    state.check(Ball("linf", 1.0), 30, 100, 0.75)  # no checkpoint
    assert state.step.flatten().tolist() == [2, 2, 2, 2]
    state.check(Ball("linf", 1.0), 41, 100, 0.75)
    assert state.halved.tolist() == [True, False, True, False]
    assert state.step.flatten().tolist() == [1, 2, 1, 2]
    assert state.points.flatten().tolist() == pytest.approx([0.7, 0.3, 0.7, 0.3])
    assert state.rises.tolist() == [0, 0, 0, 0]


def test_a_step_has_momentum():
    state = ascent([0.0])
    ball = Ball("linf", 0.25)
    state.images, state.step = torch.full((1, 1, 1, 1), 0.5), torch.full((1, 1, 1, 1), 0.1)
    state.points, state.previous = torch.full((1, 1, 1, 1), 0.5), torch.full((1, 1, 1, 1), 0.46)
    state.move(ball, 2)
    assert float(state.points) == pytest.approx(0.5 + 0.75 * 0.1 + 0.25 * 0.04)
    state.step = torch.full((1, 1, 1, 1), 2.0)
    state.move(ball, 1)
    assert float(state.points) == 0.75  # a first step has none, and ends at the ball


def bisected(point, image, eps):
    """The same projection by bisection of the threshold, pixel by pixel in plain Python."""
    change = [p - x for p, x in zip(point, image, strict=True)]
    room = [(1 - x) if c > 0 else x for c, x in zip(change, image, strict=True)]

    def moved(threshold):
        return [min(max(abs(c) - threshold, 0), r) for c, r in zip(change, room, strict=True)]

    low, high = 0.0, max(abs(c) for c in change)
    if sum(moved(0)) > eps:
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(moved(middle)) > eps else (low, middle)
    else:
        high = 0.0
    return [x + math.copysign(m, c) for x, m, c in zip(image, moved(high), change, strict=True)]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999), eps=st.sampled_from([0.01, 0.3, 1.0, 4.0, 20.0]), spread=st.sampled_from([0.05, 1.0, 5.0]))
def test_the_projection_in_l1(seed, eps, spread):
    source = generator(seed)
    images = torch.rand(3, 1, 2, 5, generator=source).round(decimals=seed % 3).double()
    points = images + spread * torch.randn(3, 1, 2, 5, generator=source).double()
    found = Ball("l1", eps).project(points, images)
    for each, point, image in zip(found.flatten(1), points.flatten(1), images.flatten(1), strict=True):
        assert each.tolist() == pytest.approx(bisected(point.tolist(), image.tolist(), eps), abs=1e-9)
    assert Ball("l1", eps).contains(found, images).all()
    assert torch.allclose(Ball("l1", eps).project(found, images), found)


def test_sparse_steps_move_the_steepest_pixels():
    images = torch.full((1, 1, 1, 4), 0.5)
    slopes = torch.tensor([[[[0.1, -3.0, 2.0, 0.0]]]])
    state = SparseAscent.begin(Ball("l1", 0.4), torch.arange(1), images, images, slopes, torch.zeros(1))
    state.share = torch.tensor([0.5])
    state.move(Ball("l1", 0.4), 1)
    assert (state.points - images).flatten().tolist() == pytest.approx([0, -0.2, 0.2, 0])
    state.best = state.points.clone()
    state.changed = torch.tensor([4.0])
    state.check(Ball("l1", 0.4), 4, 100, 0.75)  # 2 of 4 changed: sparser, so steps stay long and fewer pixels move
    assert float(state.step) == pytest.approx(0.4)
    assert float(state.share) == pytest.approx(2 / 4 / 1.5)
    state.check(Ball("l1", 0.4), 8, 100, 0.75)
    assert float(state.step) == pytest.approx(0.4 / 1.5)


def distances(net, images, labels, norm):
    """To the boundary of a linear model with two classes, far from the box: |margin| over the dual norm of the slope."""
    weight = net[1].weight[1] - net[1].weight[0]
    logits = net(images)
    margin = (logits[:, 1] - logits[:, 0]).abs()
    return margin / {"linf": weight.abs().sum(), "l2": weight.norm(), "l1": weight.abs().max()}[norm]


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("attack", [apgd, fab, fast_strong])
def test_a_linear_model_is_broken_exactly_where_it_can_be(attack, norm):
    net = linear_net(2).double()
    images = (0.5 + 0.02 * (pictures(24, 4).double() - 0.5)).requires_grad_(False)
    with torch.no_grad():
        net[1].bias -= net(images).mean(0)  # boundaries are near
        labels = net(images).argmax(1)
        far = distances(net, images, labels, norm)
    eps = float(far.median())
    found = attack(net, images, labels, eps * 1.02, norm)
    broken = net(found).argmax(1) != labels
    assert broken[far < eps].all()
    assert not broken[far > 1.03 * eps].any()
    assert Ball(norm, eps * 1.02).contains(found, images).all()
    assert torch.equal(found[~broken], images[~broken])  # what was not broken is given back as it was
    assert torch.equal(attack(net, images, labels, 0, norm), images)


@pytest.mark.parametrize("loss", ["ce", "dlr", "dlr-targeted", "probability-margin"])
def test_every_loss_finds_what_there_is(loss):
    net, images = small_net(4), pictures(12)
    labels = net(images).argmax(1)
    found = apgd(net, images, labels, 0.1, loss=loss, iterations=20, restarts=2)
    assert (net(found).argmax(1) != labels).all()


class Counted(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net, self.sizes = net, []

    def forward(self, images):
        self.sizes.append(len(images))
        return self.net(images)


def test_the_broken_leave_the_batch():
    net, images = small_net(), pictures(24)
    labels = net(images).argmax(1)
    for attack, options in ((apgd, {"iterations": 20}), (fab, {"iterations": 10}), (square, {"queries": 30})):
        watched = Counted(net)
        found = evaluate(watched, images, labels, lambda m, x, y, a=attack, o=options: a(m, x, y, 0.03, **o))
        survivors = int((~found.broken).sum())
        assert 0 < survivors < 24
        last = watched.sizes[-2]  # the one after it is over what was found
        assert 0 < last <= survivors if attack is square else last == survivors  # Square asks only what it does not know
        assert found.queries == sum(watched.sizes) - 2 * 24
        assert found.queries_per_image == found.queries / 24


def test_what_is_refused():
    net, images, labels = small_net(), pictures(2), torch.tensor([0, 1])
    with pytest.raises(UnknownName, match="Unknown loss 'dlrr'. Did you mean 'dlr'?"):
        apgd(net, images, labels, loss="dlrr")
    with pytest.raises(SurefootError, match="iterations must be at least 1, got 0"):
        fab(net, images, labels, iterations=0)
    with pytest.raises(SurefootError, match=r"rho must be in \(0, 1\], got 0"):
        apgd(net, images, labels, rho=0)
    with pytest.raises(UnknownName, match="Unknown norm 'l1'"):
        square(net, images, labels, norm="l1")
