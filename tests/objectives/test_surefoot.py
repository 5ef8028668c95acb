"""Our own method against its formula, image by image, and in its limits."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from surefoot.errors import SurefootError
from surefoot.objectives import CrossEntropy, LabelSmoothing, NoisyOnly, Surefoot
from surefoot.seeds import generator
from surefoot.views import AugMixChains, Contrast, GaussianBlur, GaussianNoise

LABELS = torch.arange(6) % 5


class Pixels(nn.Module):
    """Logits that are the pixels themselves; it counts the images that it sees."""

    seen = 0

    def forward(self, images):
        self.seen += len(images)
        return images.flatten(1)


def softmax(row):
    shares = [math.exp(z - max(row)) for z in row]
    return [share / sum(shares) for share in shares]


def darker(images, generator=None):
    return 0.5 * images + torch.linspace(0, 1, images.shape[1], dtype=images.dtype)[:, None, None]


@pytest.mark.parametrize(("stride", "smoothing"), [(1, 0.0), (2, 0.0), (4, 0.2)])
def test_value_against_the_formula(stride, smoothing):
    logits = torch.randn(6, 5, dtype=torch.float64, generator=generator(0))
    images = logits[:, :, None, None]
    changed = darker(images).flatten(1)
    losses, divergences = [], []
    for index, (row, other, label) in enumerate(zip(logits.tolist(), changed.tolist(), LABELS.tolist(), strict=True)):
        p, q = softmax(row), softmax(other)
        target = [(1 - smoothing) * (k == label) + smoothing / 5 for k in range(5)]
        losses.append(-sum(t * math.log(value) for t, value in zip(target, q, strict=True)))
        if index % stride == 0:
            mean = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
            pairs = [(a, b, m) for a, b, m in zip(p, q, mean, strict=True)]
            divergences.append(sum(a * math.log(a / m) / 2 + b * math.log(b / m) / 2 for a, b, m in pairs))
    net = Pixels()
    whole = {"mixed_share": 1, "view": darker}
    terms = Surefoot(consistency_weight=3.0, consistency_stride=stride, smoothing=smoothing, **whole)(net, images, LABELS)
    expected = sum(losses) / 6 + 3 * sum(divergences) / len(divergences)
    assert terms.total.item() == pytest.approx(expected, rel=1e-12)
    assert net.seen == 6 + len(divergences)  # what it costs


def test_its_view_is_augmix_then_one_of_noise_blur_and_contrast(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    options = {"noise_std": 0.3, "blur_sigma": (0.5, 1.5), "contrast": 0.4}
    terms = Surefoot(**options, mixed_share=1, smoothing=0)(net, images, LABELS, generator=generator(0))
    draws = generator(0)
    mixed = AugMixChains(3, 3)(images, draws)
    choice = (3 * torch.rand(6, generator=draws)).long().tolist()
    assert set(choice) == {0, 1, 2}
    last = [view(mixed, draws) for view in (GaussianNoise((0.0, 0.3)), GaussianBlur((0.5, 1.5)), Contrast(0.4))]
    changed = torch.stack([last[number][row] for row, number in enumerate(choice)])
    assert terms.total.item() == pytest.approx(F.cross_entropy(net(changed), LABELS).item(), rel=1e-5)


def test_without_blur_and_contrast_every_image_is_noisy(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    noise_alone = Surefoot(noise_std=0.3, blur_sigma=None, contrast=None, mixed_share=1, smoothing=0)
    terms = noise_alone(net, images, LABELS, generator=generator(3))
    draws = generator(3)
    changed = GaussianNoise((0.0, 0.3))(AugMixChains(3, 3)(images, draws), draws)
    assert terms.total.item() == pytest.approx(F.cross_entropy(net(changed), LABELS).item(), rel=1e-5)


def test_some_images_stay_as_they_are(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    darker_one = {"view": lambda x, generator=None: 0.5 * x}
    found = Surefoot(mixed_share=0.4, smoothing=0, **darker_one)(net, images, LABELS, generator=generator(1)).total
    chosen = torch.rand(6, generator=generator(1)) < 0.4
    assert 0 < chosen.sum() < 6
    losses = [
        F.cross_entropy(net((0.5 if half else 1.0) * image[None]), label[None])
        for image, label, half in zip(images, LABELS, chosen, strict=True)
    ]
    assert found.item() == pytest.approx(torch.stack(losses).mean().item(), rel=1e-6)
    with pytest.raises(SurefootError, match=r"mixed_share must be in \(0, 1\], got 0"):
        Surefoot(mixed_share=0)


def test_limits(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    same = {"view": lambda x, generator=None: x}
    assert torch.allclose(
        Surefoot(smoothing=0, consistency_weight=1, **same)(net, images, LABELS).total,
        CrossEntropy()(net, images, LABELS).total,
    )
    smooth = LabelSmoothing(0.1)(net, images, LABELS).total
    assert torch.allclose(Surefoot(smoothing=0.1, **same)(net, images, LABELS).total, smooth)
    noisy = [
        objective(net, images, LABELS, generator=generator(0)).total
        for objective in (
            Surefoot(mixed_share=1, smoothing=0, view={"name": "noise", "std": 0.1}),
            NoisyOnly(0.1),
        )
    ]
    assert torch.equal(*noisy)
