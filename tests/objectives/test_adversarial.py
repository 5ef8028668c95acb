"""Adversarial training and TRADES: what they minimise, and that their attacks leave no trace."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from surefoot.attacks._pgd import kl_pgd, pgd
from surefoot.objectives import TRADES, AdversarialTraining, CrossEntropy
from surefoot.seeds import generator

LABELS = torch.arange(6) % 5


@pytest.fixture
def net():
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(6, momentum=0.0)  # its running statistics stay, so that attacks can be repeated
    return nn.Sequential(nn.Conv2d(3, 6, 3), norm, nn.Tanh(), nn.Flatten(), nn.Dropout(0.0), nn.Linear(1176, 5))


def plain_attack(net, images, loss_of, eps, steps, step, start):
    """PGD as a loop over the formula, in evaluation mode."""
    net.eval()
    points = (images + start).clamp(0, 1)
    for _ in range(steps):
        points = points.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss_of(net(points)), points)
        points = points.detach() + step * slope.sign()
        points = torch.max(torch.min(points, images + eps), images - eps).clamp(0, 1)
    net.train()
    return points.detach()


def test_adversarial_training_against_a_plain_loop(net, images):
    eps, steps = 8 / 255, 7
    start = eps * (2 * torch.rand(images.shape, generator=generator(3)) - 1)
    attacked = plain_attack(net, images, lambda z: F.cross_entropy(z, LABELS), eps, steps, 2.5 * eps / 7, start)
    expected = F.cross_entropy(net(attacked), LABELS)
    terms = AdversarialTraining()(net, images, LABELS, generator=generator(3))
    assert terms.total.item() == pytest.approx(expected.item(), rel=1e-5)
    assert terms.total > CrossEntropy()(net, images, LABELS).total


def test_trades_against_a_plain_loop(net, images):
    eps, steps, step = 0.05, 5, 0.02
    start = eps * (2 * torch.rand(images.shape, generator=generator(3)) - 1)
    net.eval()
    p = net(images).softmax(1).detach()
    attacked = plain_attack(
        net, images, lambda z: (p * (p.log() - z.log_softmax(1))).sum(), eps, steps, step, start
    )  # the gradient of the sum
    clean, other = net(images).log_softmax(1), net(attacked).log_softmax(1)
    expected = F.nll_loss(clean, LABELS) + 6 * (clean.exp() * (clean - other)).sum(1).mean()
    terms = TRADES(eps, steps, step)(net, images, LABELS, generator=generator(3))
    assert terms.total.item() == pytest.approx(expected.item(), rel=1e-4)
    assert terms.parts["robustness"] > 0
    ours, theirs = (torch.autograd.grad(loss, net[-1].weight)[0] for loss in (terms.total, expected))
    assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4)  # through both sides of the divergence


def test_no_budget_is_cross_entropy(net, images):
    base = CrossEntropy()(net, images, LABELS).total
    assert torch.allclose(AdversarialTraining(eps=0)(net, images, LABELS).total, base)
    assert torch.allclose(TRADES(eps=0)(net, images, LABELS).total, base, atol=1e-6)


@pytest.mark.parametrize("objective", [AdversarialTraining(), TRADES()])
def test_the_attack_leaves_no_trace(net, images, objective):
    net[4].eval()  # a layer in a mode of its own
    net[1].momentum = 1.0  # running statistics would become those of the last pass
    net[0].bias.requires_grad_(False)
    objective(net, images, LABELS, generator=generator(0))
    assert [layer.training for layer in net] == [True, True, True, True, False, True]
    assert [p.requires_grad for p in net.parameters()] == [True, False, True, True, True, True]
    assert all(p.grad is None for p in net.parameters())
    assert int(net[1].num_batches_tracked) == (1 if isinstance(objective, AdversarialTraining) else 2)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("attack", [pgd, kl_pgd])
def test_every_point_is_in_its_ball_and_in_range(net, norm, attack):
    for seed, eps in enumerate((0.0, 1e-3, 0.1, 3.0)):
        images = torch.rand(5, 3, 16, 16, generator=generator(seed)).round(decimals=seed % 2)
        labels = (LABELS[:5],) if attack is pgd else ()
        found = attack(net, images, *labels, eps=eps, steps=3, norm=norm, generator=generator(seed, "start"))
        change = (found - images).flatten(1)
        sizes = change.abs().amax(1) if norm == "linf" else change.norm(dim=1)
        assert sizes.max() <= eps * (1 + 1e-5) + 1e-7
        assert found.min() >= 0
        assert found.max() <= 1
        if eps == 0:
            assert torch.equal(found, images)
        elif eps == 0.1:
            assert sizes.min() > 0.3 * eps
