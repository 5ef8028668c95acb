"""Our own method against its formula, image by image, and in its limits."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from surefoot.errors import SurefootError
from surefoot.objectives import CleanAndNoisy, CrossEntropy, LabelSmoothing, Surefoot
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
    seen = [(row, int(label)) for row, label in zip(logits.tolist(), LABELS, strict=True)]
    seen += [(changed[index].tolist(), int(LABELS[index])) for index in range(0, 6, stride)]
    losses = []
    for row, label in seen:
        target = [(1 - smoothing) * (k == label) + smoothing / 5 for k in range(5)]
        losses.append(-sum(t * math.log(p) for t, p in zip(target, softmax(row), strict=True)))
    net = Pixels()
    terms = Surefoot(mixed_stride=stride, smoothing=smoothing, view=darker)(net, images, LABELS)
    assert terms.total.item() == pytest.approx(sum(losses) / len(losses), rel=1e-12)
    assert terms.parts["mixed"].item() == pytest.approx(sum(losses[6:]) / len(losses[6:]), rel=1e-12)
    assert torch.equal(terms.logits, logits)
    assert net.seen == len(losses)  # what it costs


def mean_loss(net, *batches):
    """Cross-entropy over all images of some batches with their labels."""
    logits = torch.cat([net(images) for images, _ in batches])
    return F.cross_entropy(logits, torch.cat([labels for _, labels in batches])).item()


def test_its_view_is_augmix_then_one_of_noise_blur_and_contrast(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    options = {"noise_std": 0.3, "blur_sigma": (0.5, 1.5), "contrast": 0.4}
    terms = Surefoot(**options, mixed_stride=1, smoothing=0)(net, images, LABELS, generator=generator(0))
    draws = generator(0)
    mixed = AugMixChains(3, 3)(images, draws)
    choice = (3 * torch.rand(6, generator=draws)).long().tolist()
    assert set(choice) == {0, 1, 2}
    last = [view(mixed, draws) for view in (GaussianNoise((0.0, 0.3)), GaussianBlur((0.5, 1.5)), Contrast(0.4))]
    changed = torch.stack([last[number][row] for row, number in enumerate(choice)])
    assert terms.total.item() == pytest.approx(mean_loss(net, (images, LABELS), (changed, LABELS)), rel=1e-5)


def test_without_blur_and_contrast_every_mixed_image_is_noisy(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    noise_alone = Surefoot(noise_std=0.3, blur_sigma=None, contrast=None, smoothing=0)
    terms = noise_alone(net, images, LABELS, generator=generator(3))
    draws = generator(3)
    changed = GaussianNoise((0.0, 0.3))(AugMixChains(3, 3)(images[::4], draws), draws)
    assert terms.total.item() == pytest.approx(mean_loss(net, (images, LABELS), (changed, LABELS[::4])), rel=1e-5)


def test_limits(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    same = {"view": lambda x, generator=None: x, "mixed_stride": 1}
    plain = CrossEntropy()(net, images, LABELS).total
    assert torch.allclose(Surefoot(smoothing=0, **same)(net, images, LABELS).total, plain)
    smooth = LabelSmoothing(0.1)(net, images, LABELS).total
    assert torch.allclose(Surefoot(smoothing=0.1, **same)(net, images, LABELS).total, smooth)
    noisy = {"view": {"name": "noise", "std": 0.1}, "mixed_stride": 1, "smoothing": 0}
    both = [each(net, images, LABELS, generator=generator(0)).total for each in (Surefoot(**noisy), CleanAndNoisy(0.1))]
    assert torch.allclose(*both)
    with pytest.raises(SurefootError):  # as of any method without images
        Surefoot()(net, images[:0], LABELS[:0])
    with pytest.raises(SurefootError, match="mixed_stride must be at least 1, got 0"):
        Surefoot(mixed_stride=0)
