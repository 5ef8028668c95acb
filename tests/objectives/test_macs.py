"""MaCS against its equations, by hand and in plain Python."""

import math

import pytest
import torch
from torch import nn

from surefoot.objectives import AugMix, CrossEntropy, MaCS, MaCSAugMix
from surefoot.objectives.macs import margin_loss
from surefoot.seeds import generator
from surefoot.views import AugMixChains, GaussianBlur, GaussianNoise


def softmax(row):
    top = max(row)
    shares = [math.exp(z - top) for z in row]
    return [share / sum(shares) for share in shares]


def plain_macs(logits, other, labels, margin, margin_weight, consistency_weight):
    """Eq. 2 to 6, image by image."""
    total = 0.0
    for z, w, y in zip(logits.tolist(), other.tolist(), labels.tolist(), strict=True):
        p, q = softmax(z), softmax(w)
        gamma = z[y] - max(value for k, value in enumerate(z) if k != y)
        divergence = sum(a * (math.log(a) - math.log(b)) for a, b in zip(p, q, strict=True))
        total += -math.log(p[y]) + margin_weight * max(0, margin - gamma) ** 2 + consistency_weight * divergence
    return total / len(labels)


class Scaled(nn.Module):
    """Logits that are the pixels themselves."""

    def forward(self, images):
        return images.flatten(1)


def lift(logits):
    return logits[:, :, None, None]


def halve_and_shift(images, generator=None):
    return 0.5 * images + torch.linspace(0, 1, images.shape[1], dtype=images.dtype)[:, None, None]


def test_value_and_gradient_against_the_equations():
    logits = torch.randn(6, 4, dtype=torch.float64, generator=generator(0)).requires_grad_()
    labels = torch.tensor([0, 3, 1, 2, 2, 0])
    objective = MaCS(margin=1.5, margin_weight=0.3, consistency_weight=0.7, view=halve_and_shift)
    terms = objective(Scaled(), lift(logits), labels)

    def plain(z):
        return plain_macs(z, halve_and_shift(lift(z)).flatten(1), labels, 1.5, 0.3, 0.7)

    assert terms.total.item() == pytest.approx(plain(logits), rel=1e-12)
    terms.total.backward()
    step = 1e-6
    for i in range(6):
        for k in range(4):  # the gradient goes through both sides of the divergence
            change = torch.zeros_like(logits)
            change[i, k] = step
            slope = (plain(logits + change) - plain(logits - change)) / (2 * step)
            assert logits.grad[i, k].item() == pytest.approx(slope, abs=1e-7)


def test_the_margin_by_hand_with_ties():
    logits = torch.tensor([[2.0, 0.5, 1.0, -1.0], [1.0, 1.0, 0.0, 0.0], [0.0, 3.0, 3.0, 1.0]], requires_grad=True)
    labels = torch.tensor([0, 1, 0])  # gamma = 1, 0 and -3
    loss = margin_loss(logits, labels, 1.0)
    assert loss.item() == pytest.approx((0 + 1 + 16) / 3)
    loss.backward()
    expected = torch.tensor([[0.0, 0, 0, 0], [2 / 3, -2 / 3, 0, 0], [-8 / 3, 8 / 3, 0, 0]])  # of equals, the first
    assert torch.allclose(logits.grad, expected)


def test_limits(images):
    net, labels = nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), torch.arange(6) % 5
    base = CrossEntropy()(net, images, labels)
    assert torch.allclose(MaCS(margin_weight=0, consistency_weight=0)(net, images, labels).total, base.total)
    same = MaCS(view=lambda x, generator=None: x)(net, images, labels)
    assert same.parts["consistency"].item() == pytest.approx(0, abs=1e-7)
    assert MaCS(margin=0)(net, 0 * images, labels, generator=generator(0)).parts["margin"].item() >= 0


def test_the_direction_of_the_divergence_and_huge_logits():
    certain, vague = torch.tensor([[1e4, -1e4]]), torch.tensor([[0.0, 0.0]])
    objective = MaCS(margin_weight=0, consistency_weight=1, view=lambda x, generator=None: 0 * x)
    forward = objective(Scaled(), lift(certain), torch.tensor([0])).parts["consistency"]
    assert forward.item() == pytest.approx(math.log(2), rel=1e-6)  # D(certain || vague), not the other way round (1e4)
    for first, second in ((certain, -certain), (vague, certain), (certain, vague)):
        logits = first.clone().requires_grad_()
        terms = MaCS(view=lambda x, generator=None, to=second: lift(to) + 0 * x)(Scaled(), lift(logits), torch.tensor([1]))
        terms.total.backward()
        assert torch.isfinite(terms.total)
        assert torch.isfinite(logits.grad).all()


def test_the_default_view_is_blur_then_noise(images):
    net, labels = nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), torch.arange(6) % 5
    draws = generator(3)
    changed = GaussianNoise(0.1)(GaussianBlur((0.1, 2.0), 3)(images, draws), draws)
    given = MaCS(view=lambda x, generator=None: changed)(net, images, labels)
    assert torch.equal(MaCS()(net, images, labels, generator=generator(3)).total, given.total)


def test_a_stride_measures_every_nth_image(images):
    """The same term from fewer images: a mean over every second image, which then are the only ones perturbed."""
    net, labels = nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), torch.arange(6) % 5
    seen = []

    def view(x, generator=None):
        seen.append(x)
        return 0.5 * x

    thin = MaCS(view=view, consistency_stride=2)(net, images, labels)
    assert torch.equal(seen[0], images[::2])
    full = MaCS(view=lambda x, generator=None: 0.5 * x)(net, images[::2], labels[::2])
    assert thin.parts["consistency"].item() == pytest.approx(full.parts["consistency"].item(), rel=1e-5)
    whole = MaCS(view=lambda x, generator=None: 0.5 * x)(net, images, labels)
    assert thin.parts["cross_entropy"].item() == pytest.approx(whole.parts["cross_entropy"].item(), rel=1e-5)
    assert thin.parts["margin"].item() == pytest.approx(whole.parts["margin"].item(), rel=1e-5)


def test_macs_and_augmix_are_summed(images):
    net, labels = nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), torch.arange(6) % 5
    terms = MaCSAugMix()(net, images, labels, generator=generator(5))
    draws = generator(5)
    noisy = GaussianNoise(0.1)(GaussianBlur((0.1, 2.0), 3)(images, draws), draws)
    first, second = (AugMixChains(3, 3)(images, draws) for _ in range(2))
    clean, rest = net(images), [net(x).softmax(1) for x in (images, first, second)]
    mean = sum(rest) / 3
    shannon = sum((p * (p / mean).log()).sum(1) for p in rest).mean() / 3
    macs = plain_macs(clean.double(), net(noisy).double(), labels, 1.0, 0.1, 0.5)
    assert terms.total.item() == pytest.approx(macs + 12 * shannon.item(), rel=1e-4)
    assert set(terms.parts) == {"cross_entropy", "margin", "consistency", "jensen_shannon"}


@pytest.mark.parametrize(("choice", "passes"), [("together", 1), ("apart", 4)])
def test_batch_norm_of_macs_and_augmix(images, choice, passes):
    """As AugMix has it unless asked: one mean and deviation over clean images and all their views."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(768, affine=False, momentum=1.0)
    net = nn.Sequential(nn.Flatten(), norm, nn.Linear(768, 5))
    assert MaCSAugMix().batch_norm == AugMix().batch_norm == "together"
    terms = MaCSAugMix(batch_norm=choice)(net, images, torch.arange(6) % 5, generator=generator(5))
    draws = generator(5)
    noisy = GaussianNoise(0.1)(GaussianBlur((0.1, 2.0), 3)(images, draws), draws)
    batches = [images, noisy, *(AugMixChains(3, 3)(images, draws) for _ in range(2))]
    assert int(norm.num_batches_tracked) == passes
    seen = torch.cat(batches) if choice == "together" else batches[0]
    flat = torch.cat(batches).flatten(1) if choice == "together" else batches[-1].flatten(1)
    torch.testing.assert_close(norm.running_mean, flat.mean(0))
    own = seen.flatten(1)
    spread = (own.var(0, correction=0) + norm.eps).sqrt()
    expected = ((images.flatten(1) - own.mean(0)) / spread) @ net[2].weight.T + net[2].bias
    torch.testing.assert_close(terms.logits, expected, rtol=1e-4, atol=1e-4)


def test_the_margin_of_half_precision_is_not_squared_in_it():
    logits = torch.tensor([[-300.0, 300.0]], dtype=torch.float16)
    assert float(margin_loss(logits, torch.tensor([0]), 1.0)) == 601.0**2
