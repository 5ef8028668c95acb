"""Noise stability, Thm 6.1's numbers and magnma Theorem 1."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from surefoot.geometry import curvature_bounds, hessian_curvature, hessian_eigenvalues, loss_change_bound, noise_stability
from surefoot.geometry.evaluation import base_seed, gaussian
from surefoot.models.observing import head_of, observed
from surefoot.seeds import generator


def test_against_definition_6_1(smooth, points, answers):
    """eta and l_out, image by image, on the same noise."""
    found = noise_stability(smooth, points, answers, 0.3, 1.2, 12, generator(0), batch_size=3)
    seed, head = base_seed(generator(0)), head_of(smooth, points)
    assert 0 < float(found.values.mean()) < 1
    for place in range(7):
        image, label = points[place : place + 1], answers[place : place + 1]
        clean, losses = observed(smooth, head, image).features, []
        for draw in range(12):
            noisy = observed(smooth, head, image + 0.3 * gaussian(image, place, draw, seed))
            if (noisy.features - clean).norm() > 1.2:
                losses.append(F.cross_entropy(noisy.logits, label).detach())
        assert float(found.values[place]) == pytest.approx(1 - len(losses) / 12)
        if losses:
            assert float(found.outside_losses[place]) == pytest.approx(float(torch.stack(losses).mean()))
        else:
            assert found.outside_losses[place].isnan()


def test_a_large_ball_holds_everything(kinked, points, answers):
    found = noise_stability(kinked, points, answers, distance=1e6)
    assert found.values.tolist() == [1.0] * 7
    assert found.outside_losses.isnan().all()
    bounds = curvature_bounds(kinked, points, answers, distance=1e6)
    assert (bounds.lower < 0).all()  # nothing is said: minus 4 ||grad||^2 / sigma^2


def test_the_bounds_by_their_formulas(smooth, points, answers):
    """Eq. 15 and 16 from the parts of the result."""
    found = curvature_bounds(smooth, points, answers, 0.3, 1.2, 12, generator(0), batch_size=4)
    parts, row = found.stability, smooth[3].weight.norm(dim=1).max().detach()
    upper = 8 / 0.3**4 * (parts.values * row**2 * 1.2**2 + 4 * (1 - parts.values) * parts.largest_logit**2)
    torch.testing.assert_close(found.values, upper)
    image = points.clone().requires_grad_()
    gradient = torch.autograd.grad(F.cross_entropy(smooth(image), answers, reduction="sum"), image)[0].flatten(1)
    out = (1 - parts.values) * (parts.outside_losses - parts.clean_losses).square().nan_to_num()
    torch.testing.assert_close(found.lower, 4 / 0.3**4 * (out.nan_to_num() - 0.3**2 * gradient.square().sum(1)))
    assert "exclude each other" in found.note


def test_the_caveat_of_theorem_6_1_is_needed(points, answers):
    """A steep tanh has bounded logits and no quadratic loss: the curvature is far above Eq. 15."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(18, 1), nn.Tanh(), nn.Linear(1, 4)).double()
    with torch.no_grad():
        net[1].weight.mul_(200)
        net[1].bias.fill_(0.4 - float(net[1].weight @ points[0].flatten()))
    image, label = points[:1], answers[:1]
    bound = curvature_bounds(net, image, label, 0.5, 0.1, 50, generator(0)).values
    assert hessian_curvature(net, image, label, 50, generator(0)).values > 10 * bound


def test_the_loss_moves_by_at_most_twice_the_largest_logit_change(smooth, points, answers):
    """Step 3 of the proof, which always holds."""
    with torch.no_grad():
        for std in (0.01, 1.0, 20.0):
            other = points + std * torch.randn_like(points)
            moved = (smooth(other) - smooth(points)).abs().amax(1)
            losses = [F.cross_entropy(smooth(x), answers, reduction="none") for x in (points, other)]
            assert ((losses[1] - losses[0]).abs() <= 2 * moved + 1e-12).all()


def test_identity_22_in_the_limit(smooth, points, answers, hessians):
    """E (l(x + e) - l(x))^2 = sigma^2 ||grad||^2 + sigma^4 (2 ||H||_F^2 + (tr H)^2) / 4 as sigma goes to 0.

    The second part alone: the odd terms cancel between e and -e, and are taken out as the mean of the two.
    """
    dense, std = hessians(smooth, points[:1], answers[:1])[0], 1e-3
    noise = std * torch.randn(40000, 18, dtype=torch.float64, generator=generator(3))
    image, labels = points[:1].flatten(1), answers[:1].expand(40000)
    with torch.no_grad():
        clean = F.cross_entropy(smooth(image), answers[:1])
        even = sum(F.cross_entropy(smooth(image + e), labels, reduction="none") for e in (noise, -noise)) / 2 - clean
    expected = std**4 / 4 * (2 * dense.square().sum() + dense.trace() ** 2)
    assert float(even.square().mean() / expected) == pytest.approx(1, abs=0.05)


def test_theorem_1_holds_where_the_net_is_linear(points, answers):
    """A linear net has a positive semidefinite Hessian; within a small distance no direction changes the loss by more."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(18, 4)).double()
    found = loss_change_bound(net, points, answers, 0.02, generator=generator(0), batch_size=3)
    torch.testing.assert_close(found.values, found.two_sided, rtol=1e-9, atol=1e-15)
    with torch.no_grad():
        clean = F.cross_entropy(net(points), answers, reduction="none")
        for _ in range(200):
            step = 0.02 * F.normalize(torch.randn(7, 18, dtype=torch.float64)).view_as(points)
            change = (F.cross_entropy(net(points + step), answers, reduction="none") - clean).abs()
            assert (change <= found.values * 1.01).all()
    image = points.clone().requires_grad_()
    gradient = torch.autograd.grad(F.cross_entropy(net(image), answers, reduction="sum"), image)[0]
    uphill = 0.02 * F.normalize(gradient.flatten(1)).view_as(points)
    with torch.no_grad():
        change = F.cross_entropy(net(points + uphill), answers, reduction="none") - clean
    assert (change > 0.95 * found.values).all()  # and the bound is near


def test_the_bound_is_made_of_its_parts(smooth, points, answers):
    found = loss_change_bound(smooth, points, answers, 0.5, 18, generator(0))
    ends = hessian_eigenvalues(smooth, points, answers, 18, generator(0))
    torch.testing.assert_close(found.values, 0.5 * found.gradient_norms + 0.125 * ends.values)
    assert (found.two_sided >= found.values).all()
    assert (found.two_sided > found.values).any()
