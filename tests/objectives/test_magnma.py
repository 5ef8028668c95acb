"""MAGNMA against Algorithm 1, and its small-noise limit."""

import pytest
import torch
from torch import nn
from torchvision.transforms import functional as tv

from surefoot.objectives import MAGNMA, CrossEntropy, DiGN
from surefoot.seeds import generator
from surefoot.views import GaussianNoise, MixedTone


def algorithm_1(net, images, labels, noisy, mixed, noise_weight, mix_weight):
    """The loss as the paper's pseudocode writes it, example by example, from given draws."""
    total = 0.0
    for i, y in enumerate(labels.tolist()):
        p = net(images[i : i + 1]).softmax(1)[0]
        terms = []
        for draws in (noisy, mixed):
            divergences = [(p * (p / net(x[i : i + 1]).softmax(1)[0]).log()).sum() for x in draws]
            terms.append(sum(divergences) / len(draws))
        total = total - p[y].log() + noise_weight * p[y] * terms[0] + mix_weight * p[y] * terms[1]
    return total / len(labels)


@pytest.mark.parametrize(("samples", "noise_weight", "mix_weight"), [(5, 0.2, 0.3), (1, 2.0, 0.5), (3, 0.1, 5.0)])
def test_value_and_gradient_against_algorithm_1(samples, noise_weight, mix_weight):
    torch.manual_seed(0)
    images, labels = torch.rand(4, 3, 6, 6, dtype=torch.float64), torch.tensor([0, 2, 1, 1])
    net = nn.Sequential(nn.Flatten(), nn.Linear(108, 7), nn.Tanh(), nn.Linear(7, 3)).double()
    terms = MAGNMA(noise_weight, mix_weight, samples=samples)(net, images, labels, generator=generator(1))
    draws = generator(1)
    noisy = [GaussianNoise((0.0, 0.2))(images, draws) for _ in range(samples)]
    mixed = [MixedTone(1.0)(images, draws) for _ in range(samples)]
    plain = algorithm_1(net, images, labels, noisy, mixed, noise_weight, mix_weight)
    assert terms.total.item() == pytest.approx(plain.item(), rel=1e-10)
    ours = torch.autograd.grad(terms.total, list(net.parameters()))
    theirs = torch.autograd.grad(plain, list(net.parameters()))  # p_y carries gradient
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-8, atol=1e-12)


def test_a_detached_weight_changes_the_gradient_only(images):
    torch.manual_seed(0)
    net, labels = nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), torch.arange(6) % 5
    free, fixed = (MAGNMA(noise_weight=5, detach_weight=d)(net, images, labels, generator=generator(0)) for d in (False, True))
    assert torch.equal(free.total, fixed.total)
    gradients = [torch.autograd.grad(terms.total, net[1].weight)[0] for terms in (free, fixed)]
    assert not torch.allclose(*gradients, atol=1e-4)


def test_a_weight_of_zero_leaves_its_passes_out(images):
    calls = []

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(768, 5)
            self.norm = nn.BatchNorm1d(5)

        def forward(self, x):
            calls.append(len(x))
            return self.norm(self.layer(x.flatten(1)))

    net, labels = Net(), torch.arange(6) % 5
    MAGNMA(mix_weight=0, samples=2)(net, images, labels)
    assert calls == [6, 6, 6]
    calls.clear()
    both_off = MAGNMA(noise_weight=0, mix_weight=0)(net, images, labels).total
    assert calls == [6]
    assert torch.allclose(both_off, CrossEntropy()(net, images, labels).total)
    calls.clear()
    MAGNMA(samples=2, batch_norm="together")(net, images, labels)
    assert calls == [6 * 5]


def test_the_small_noise_limit_is_the_trace_of_the_fisher_information():
    """E D(p(x) || p(x + d)) is max_std^2 / 6 times tr F(x) for small noise (Eq. 7 to 10): smooth net, float64, no clipping."""
    torch.manual_seed(0)
    image = torch.rand(1, 1, 3, 3, dtype=torch.float64)
    net = nn.Sequential(nn.Flatten(), nn.Linear(9, 12), nn.Tanh(), nn.Linear(12, 4)).double()
    trace = 0.0
    for k, share in enumerate(net(image).softmax(1)[0]):  # sum over k of p_k ||grad log p_k||^2
        point = image.clone().requires_grad_()
        (slope,) = torch.autograd.grad(net(point).log_softmax(1)[0, k], point)
        trace += share.item() * slope.square().sum().item()
    many, std = 20000, 0.01
    objective = MAGNMA(noise_weight=1.0, mix_weight=0.0, max_std=std, samples=1)
    terms = objective(net, image.expand(many, 1, 3, 3), torch.zeros(many, dtype=torch.long), generator=generator(2))
    own = net(image).softmax(1)[0, 0].item()
    assert terms.parts["noise"].item() / (std**2 / 6) == pytest.approx(own * trace, rel=0.03)


def test_the_mixed_views_law():
    """Beta(0.001) mixes all or nothing, so each image is itself or one of four changes of tone, as often as it should."""
    image = ((30 + 170 * torch.linspace(0, 1, 1024) ** 3).round() / 255).view(1, 1, 32, 32)
    count = 4000
    changed = MixedTone(1e-3)(image.expand(count, 1, 32, 32), generator(0))
    whole = torchvision_image(image)
    posterized = [tv.posterize(whole, max(1, 4 - int(0.4 * u))) for u in range(1, 11)]
    solarized = [tv.solarize(whole, 256 - int(25.6 * u)) for u in range(1, 11)]
    kinds = {"none": [whole], "autocontrast": [tv.autocontrast(whole)], "equalize": [tv.equalize(whole)]}
    found = {}
    for kind, candidates in (kinds | {"posterize": posterized, "solarize": solarized}).items():
        near = [((changed * 255 - c).abs().flatten(1).amax(1) < 1.01) for c in candidates]
        found[kind] = torch.stack(near).any(0).float().mean().item()
    assert found["none"] == pytest.approx(0.5 + 0.125 * 0.1 * 2, abs=0.03)  # solarize at levels 1 and 2 leaves this image alone
    for kind in ("autocontrast", "equalize", "posterize"):
        assert found[kind] == pytest.approx(0.125, abs=0.02), kind
    assert sum(found.values()) == pytest.approx(1 + 0.5 + 2 * 0.0125, abs=0.03)  # the unchanged one is also a solarized one


def torchvision_image(image):
    return (image * 255).to(torch.uint8)


def test_dign_is_the_noise_term_without_its_weight():
    torch.manual_seed(0)
    images, labels = torch.rand(4, 3, 6, 6, dtype=torch.float64), torch.tensor([0, 2, 1, 1])
    net = nn.Sequential(nn.Flatten(), nn.Linear(108, 7), nn.Tanh(), nn.Linear(7, 3)).double()
    terms = DiGN(0.4, samples=3)(net, images, labels, generator=generator(1))
    draws = generator(1)
    noisy = [GaussianNoise((0.0, 0.2))(images, draws) for _ in range(3)]
    p = net(images).softmax(1)
    divergence = sum((p * (p / net(x).softmax(1)).log()).sum(1).mean() for x in noisy) / 3
    expected = -p[torch.arange(4), labels].log().mean() + 0.4 * divergence
    assert terms.total.item() == pytest.approx(expected.item(), rel=1e-10)
    assert set(terms.parts) == {"cross_entropy", "noise"}
