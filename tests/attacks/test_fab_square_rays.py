"""FAB's projection against a solver, Square's schedule and patterns by hand, RayS from labels, and models without gradients."""

import math

import numpy as np
import pytest
import torch
from attack_nets import pictures, small_net
from scipy.optimize import linprog, minimize
from torch import nn

from surefoot.attacks import evaluate, fab, gives_gradients, pgd, rays, square
from surefoot.attacks._fab import step
from surefoot.attacks._rays import blocks
from surefoot.attacks._square import bumps, reshape, share_at, side_of, stripes, tiles
from surefoot.attacks.hyperplanes import to_hyperplane
from surefoot.attacks.norms import Ball
from surefoot.errors import SurefootError
from surefoot.seeds import ImageDraws, generator


def solved(point, normal, offset, norm):
    """The smallest change by scipy: a linear programme for L-inf and L1, a quadratic one for L2."""
    size = len(point)
    if norm == "l2":
        plane = {"type": "eq", "fun": lambda d: normal @ (point + d) - offset, "jac": lambda d: normal}
        bounds = list(zip(-point, 1 - point, strict=True))
        start = np.zeros(size)
        found = minimize(
            lambda d: d @ d, start, jac=lambda d: 2 * d, bounds=bounds, constraints=[plane], options={"ftol": 1e-14}
        )
        return math.sqrt(found.fun)
    extra = 1 if norm == "linf" else size  # |d_i| <= t, or <= t_i
    cost = np.r_[np.zeros(size), np.ones(extra)]
    caps = -np.ones((size, 1)) if norm == "linf" else -np.eye(size)
    above = np.r_[np.c_[np.eye(size), caps], np.c_[-np.eye(size), caps]]
    bounds = [*zip(-point, 1 - point, strict=True), *[(0, None)] * extra]
    plane = np.r_[normal, np.zeros(extra)][None]
    found = linprog(cost, above, np.zeros(2 * size), plane, [offset - normal @ point], bounds)
    return found.fun


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_the_projection_onto_a_hyperplane_in_the_box(norm):
    source = generator(3)
    points, normals = torch.rand(12, 6, generator=source).double(), torch.randn(12, 6, generator=source).double()
    normals[3, 2:4] = 0
    points[4] = points[4].round()
    goals = torch.rand(12, 6, generator=source).double()  # a point of the box on the plane: it can be reached
    offsets = (normals * goals).sum(1)
    ways = to_hyperplane(points, normals, offsets, norm)
    assert torch.allclose((normals * (points + ways)).sum(1), offsets, atol=1e-9)
    assert (points + ways).min() >= -1e-12
    assert (points + ways).max() <= 1 + 1e-12
    order = {"linf": torch.inf, "l2": 2, "l1": 1}[norm]
    sizes = torch.linalg.vector_norm(ways, order, dim=1)
    expected = [solved(*case, norm) for case in zip(points.numpy(), normals.numpy(), offsets.numpy(), strict=True)]
    assert sizes.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_a_hyperplane_out_of_reach_is_approached_as_far_as_the_box_goes(norm):
    points, normals = torch.tensor([[0.2, 0.7, 0.5]]), torch.tensor([[1.0, -2.0, 0.0]])
    ways = to_hyperplane(points, normals, torch.tensor([5.0]), norm)  # <w, x> is at most 1
    assert (points + ways)[0, :2].tolist() == pytest.approx([1, 0])
    assert ways[0, 2] == 0


def test_a_step_of_fab_by_hand():
    """One pixel at 0.6, image at 0.5, f(x) = 2 (x - 0.8): both ways end at 0.8, and the image's counts a tenth at most."""
    points, images = torch.full((1, 1, 1, 1), 0.6), torch.full((1, 1, 1, 1), 0.5)
    found = step(points, images, torch.full((1, 1, 1, 1), 2.0), torch.tensor([-0.4]), Ball("linf", 0.1))
    assert float(found) == pytest.approx(0.9 * (0.6 + 1.05 * 0.2) + 0.1 * (0.5 + 1.05 * 0.3))


def test_the_share_of_the_square():
    """The paper halves p at 10, 50, 200, 500, 1000, 2000, 4000, 6000 and 8000 of 10,000 queries."""
    shares = [share_at(query, 10000, 0.8, True) for query in (0, 10, 11, 51, 201, 501, 1001, 2001, 4001, 6001, 8001, 9999)]
    assert shares == [0.8, 0.8, *(0.8 / 2**k for k in range(1, 10)), 0.8 / 512]
    assert [share_at(query, 1000, 0.8, True) for query in (1, 2, 800, 801)] == [0.8, 0.4, 0.8 / 256, 0.8 / 512]
    assert share_at(801, 1000, 0.8, False) == 0.8 / 16
    assert [side_of(0.8, 32, 32, "linf"), side_of(0.8 / 512, 32, 32, "linf"), side_of(0.8, 3, 50, "linf")] == [29, 1, 3]
    assert [side_of(0.8 / 512, 32, 32, "l2"), side_of(0.3, 32, 32, "l2"), side_of(0.3, 2, 9, "l2")] == [3, 19, 2]


def ring_by_ring(height, width):
    """The authors' pattern: squares around the middle, each adding 1 / n^2."""
    bump = np.zeros((height, width))
    top, left = height // 2, width // 2
    for number in range(max(height // 2, width // 2) + 1):
        rows, columns = slice(max(top - number, 0), top + number + 1), slice(max(left - number, 0), left + number + 1)
        bump[rows, columns] += 1 / (number + 1) ** 2
    return bump / np.linalg.norm(bump)


@pytest.mark.parametrize("side", [2, 3, 6, 9])
def test_the_bumps_by_hand(side):
    both = np.concatenate([ring_by_ring(side // 2, side), -ring_by_ring(side - side // 2, side)])
    assert np.allclose(bumps(side).numpy(), both / np.linalg.norm(both))


def test_first_patterns_use_the_whole_budget():
    images = torch.full((3, 3, 11, 8), 0.5)
    draws = ImageDraws(0, "test", torch.arange(3))
    change = stripes(draws, images, 0.1) - images
    assert torch.allclose(change.abs(), torch.full_like(change, 0.1))
    assert torch.equal(change[:, :, :1].expand_as(change), change)
    assert (tiles(draws, images, 0.1) - images).flatten(1).norm(dim=1).tolist() == pytest.approx([0.1] * 3, rel=1e-5)


@pytest.mark.parametrize(("channels", "side"), [(1, 3), (3, 6), (5, 4)])
def test_what_is_known_is_not_asked(channels, side):
    """The same points as of a model that says it is randomised, and is asked every time."""

    class Watched(nn.Module):
        def __init__(self, randomised):
            super().__init__()
            self.randomised, self.seen = randomised, []
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Flatten(), nn.Linear(channels * side**2, 16), nn.Tanh(), nn.Linear(16, 3))

        def forward(self, images):
            self.seen += images.flatten(1).tolist()
            return self.net(images)

    images = torch.rand(16, channels, side, side, generator=generator(2))
    careful, plain = Watched(False), Watched(True)
    with torch.no_grad():
        middle = plain.net(images).mean(0)
        for net in (careful, plain):
            net.net[3].bias -= middle  # boundaries are near
    labels = plain.net(images).argmax(1)
    found = [square(net, images, labels, 0.02, queries=400) for net in (careful, plain)]
    assert torch.equal(*found)
    broken = (found[0] != images).flatten(1).any(1)
    assert 0 < int(broken.sum()) < 16
    assert set(map(tuple, careful.seen)) == set(map(tuple, plain.seen))
    assert len(careful.seen) < {1: 0.2, 3: 0.9, 5: 1}[channels] * len(plain.seen)


def test_a_query_in_l2_moves_the_budget():
    """The change stays as long as the budget, and outside both squares it keeps its direction."""
    images = torch.full((1, 2, 9, 9), 0.5, dtype=torch.float64)
    points = tiles(ImageDraws(0, "test", torch.arange(1)), images, 0.2)
    numbers = torch.tensor([[0.0, 0.0, 0.99, 0.99, 0.2, 0.7, 0.2]], dtype=torch.float64)
    new = reshape(numbers, images, points, 0.2, 3)
    before, after = points - images, new - images
    assert float(after.norm()) == pytest.approx(0.2)
    assert after[:, :, 6:, 6:].abs().max() == 0
    assert after[:, :, :3, :3].abs().min() > 0
    rest = before.clone()
    rest[:, :, :3, :3] = rest[:, :, 6:, 6:] = 0
    there = rest != 0
    assert torch.allclose(after[there] / before[there], (after[there] / before[there])[0])


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_square_on_a_model_it_can_solve(norm):
    """Class 1 where the mean is above a half: near images break, and those whose mean no budget moves so far do not."""

    class Mean(nn.Module):
        def forward(self, images):
            mean = 20 * (images.mean((1, 2, 3)) - 0.5)
            return torch.stack([-mean, mean], 1)

    near = 0.02 if norm == "linf" else 0.004  # bumps of both signs move the mean little
    images = torch.full((4, 1, 10, 10), 0.5) + torch.tensor([-0.04, -near, near, 0.04])[:, None, None, None]
    labels = Mean()(images).argmax(1)
    eps = 0.03 if norm == "linf" else 0.3  # no change moves the mean by more than 0.03
    found = square(Mean(), images, labels, eps, norm, queries=400)
    assert (Mean()(found).argmax(1) != labels).tolist() == [False, True, True, False]


def test_blocks_of_rays():
    assert blocks(4) == [(0, 4), (0, 2), (2, 4), (0, 1), (1, 2), (2, 3), (3, 4)]
    for pixels in (1, 5, 12):
        last = blocks(pixels)[-pixels:]
        assert last == [(place, place + 1) for place in range(pixels)]


class Labels(nn.Module):
    """A model that tells its label and nothing else, to whom no gradient leads."""

    def __init__(self, net):
        super().__init__()
        self.net, self.asked = net, 0

    def forward(self, images):
        self.asked += len(images)
        with torch.no_grad():
            return nn.functional.one_hot(self.net(images).argmax(1), 5).float()


def test_rays_needs_labels_alone():
    """Nearly what PGD finds with gradients, within its queries, in the ball."""
    net, images = small_net(), pictures(16)
    labels = net(images).argmax(1)
    blind, eps = Labels(net), 0.04
    found = evaluate(blind, images, labels, lambda m, x, y: rays(m, x, y, eps, queries=300))
    seen = evaluate(net, images, labels, lambda m, x, y: pgd(m, x, y, eps, 20))
    assert seen.success_rate >= found.success_rate > 0.5 * seen.success_rate > 0
    assert found.queries <= 16 * 302
    assert Ball("linf", eps).contains(rays(blind, images, labels, eps, queries=300), images).all()


def test_a_model_without_gradients():
    net, images = small_net(), pictures(6)
    assert gives_gradients(net, images)
    assert not gives_gradients(Labels(net), images)
    with pytest.raises(SurefootError, match="no gradient reaches the images"):
        fab(Labels(net), images, net(images).argmax(1))
