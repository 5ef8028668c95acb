"""The minimum of the loss in feature space against scipy's, against closed forms, and where there is none."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.spatial import ConvexHull
from torch import nn

from surefoot.errors import SurefootError
from surefoot.geometry import class_centres, class_targets, minimum_loss_points


def linear(classes, dimensions, seed=0, size=1.0):
    torch.manual_seed(seed)
    head = nn.Linear(dimensions, classes, dtype=torch.float64)
    with torch.no_grad():
        head.weight.mul_(size)
    return head


def circle(classes=10):
    """Unit weights around the origin, without bias."""
    head = nn.Linear(2, classes, bias=False, dtype=torch.float64)
    turns = torch.arange(classes, dtype=torch.float64) * 2 * math.pi / classes
    with torch.no_grad():
        head.weight.copy_(torch.stack([turns.cos(), turns.sin()], 1))
    return head


def by_scipy(head, target):
    """BFGS on the loss in numpy, from 0."""
    weight, bias = (each.detach().numpy() for each in (head.weight, head.bias))

    def loss(point):
        logits = weight @ point + bias
        top = logits.max()
        sure = top + np.log(np.exp(logits - top).sum())
        return sure - target @ logits, (np.exp(logits - sure) - target) @ weight

    return minimize(loss, np.zeros(weight.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).x


@pytest.mark.parametrize(("classes", "dimensions"), [(10, 2), (7, 3), (4, 6), (5, 4)])  # few dimensions, more, just enough
@pytest.mark.parametrize("smoothing", [0.1, 0.5])
def test_as_scipy_finds_it(classes, dimensions, smoothing):
    head, targets = linear(classes, dimensions, size=3.0), class_targets(classes, smoothing)
    minima = minimum_loss_points(head, targets)
    assert minima.finite.all()
    assert minima.converged.all()
    for point, target in zip(minima.points.numpy(), targets.numpy(), strict=True):
        np.testing.assert_allclose(point, by_scipy(head, target), rtol=1e-4, atol=1e-4)


def test_the_papers_steps_stop_far_before_it():
    """Ten unit weights around a circle, smoothing 0.1."""
    head = circle()
    minima = minimum_loss_points(head, class_targets(10, 0.1))
    assert minima.points.norm(dim=1).tolist() == pytest.approx([5.276] * 10, abs=1e-3)
    assert class_centres(head, smoothing=0.1).norm(dim=1).tolist() == pytest.approx([1.184] * 10, abs=1e-3)
    assert class_centres(head, 0.5, 50_000, smoothing=0.1).norm(dim=1).tolist() == pytest.approx([5.276] * 10, abs=1e-3)


def test_orthonormal_weights_in_closed_form():
    """p = t there: the leading logit is ahead by log((1 - s + s / n) / (s / n))."""
    classes, smoothing = 10, 0.1
    head = nn.Linear(12, classes, bias=False, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.linalg.qr(torch.randn(12, 12, dtype=torch.float64))[0][:classes])
    targets = class_targets(classes, smoothing)
    minima = minimum_loss_points(head, targets)
    torch.testing.assert_close(head(minima.points).softmax(1).detach(), targets)
    ahead = math.log((1 - smoothing + smoothing / classes) / (smoothing / classes))
    norm = ahead * math.sqrt(1 - 1 / classes)
    assert minima.points.norm(dim=1).tolist() == pytest.approx([norm] * classes)


@pytest.mark.parametrize("seed", range(4))
def test_a_hard_label_has_a_minimum_inside_the_hull_alone(seed):
    """As scipy's convex hull has it; what has none keeps moving away with the steps."""
    head = linear(12, 2, seed)
    border = set(ConvexHull(head.weight.detach().numpy()).vertices.tolist())
    minima = minimum_loss_points(head)
    assert {number for number, finite in enumerate(minima.finite.tolist()) if not finite} == border
    assert torch.equal(minima.finite, minima.converged)
    assert 0 < len(border) < 12
    outside = ~minima.finite
    torch.testing.assert_close(minima.points[outside], class_centres(head)[outside])
    longer = minimum_loss_points(head, steps=2000)
    assert (longer.points[outside].norm(dim=1) > 1.5 * minima.points[outside].norm(dim=1)).all()
    torch.testing.assert_close(longer.points[~outside], minima.points[~outside])
    assert (minima.steps, longer.steps) == (200, 2000)


def test_affinely_independent_weights_have_no_hard_minimum():
    assert not minimum_loss_points(linear(4, 6)).finite.any()


def test_two_classes():
    """On a circle neighbours have none (both lead together far out), others do, where their shares are met."""
    head = circle()
    targets = class_targets(10, other=0, share=0.6)
    minima = minimum_loss_points(head, targets)
    assert minima.finite.tolist() == [number not in (0, 1, 9) for number in range(10)]
    assert torch.equal(minima.finite, minima.converged)
    torch.testing.assert_close(
        (head(minima.points).softmax(1) @ head.weight)[2:9].detach(), (targets @ head.weight)[2:9].detach()
    )
    soft = minimum_loss_points(head, class_targets(10, 0.1, 0, 0.6))
    assert soft.converged.all()
    assert torch.equal(class_targets(3, other=1, share=0.75)[0], torch.tensor([0.75, 0.25, 0.0], dtype=torch.float64))


def test_a_point_that_is_not_reached_says_so():
    minima = minimum_loss_points(linear(10, 2, size=30.0), class_targets(10, 0.01), iterations=1)
    assert minima.finite.all()
    assert not minima.converged.any()


def test_wrong_arguments():
    head = linear(4, 2)
    with pytest.raises(SurefootError, match="targets must be shares of at least 0 that add up to 1"):
        minimum_loss_points(head, torch.full((1, 4), 0.3))
    with pytest.raises(SurefootError, match="targets must be any number x 4 classes"):
        minimum_loss_points(head, torch.ones(1, 3) / 3)
    with pytest.raises(SurefootError, match="other must be given for a share below 1"):
        class_targets(4, share=0.5)
    with pytest.raises(SurefootError, match="smoothing must be at least 0 and below 1"):
        class_targets(4, 1.0)
