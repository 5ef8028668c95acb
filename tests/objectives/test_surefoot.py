"""Our own method against its formula, image by image, and in its limits."""

import math

import pytest
import torch
from torch import nn

from surefoot.errors import SurefootError
from surefoot.objectives import CrossEntropy, MaCS, Surefoot
from surefoot.seeds import generator
from surefoot.views import AugMixChains, Contrast, GaussianBlur, GaussianNoise

LABELS = torch.arange(6) % 5


class Pixels(nn.Module):
    """Logits that are the pixels themselves; it counts the images that it sees."""

    seen = 0

    def forward(self, images):
        self.seen += len(images)
        return images.flatten(1)


def shares(row):
    powers = [math.exp(z - max(row)) for z in row]
    return [power / sum(powers) for power in powers]


def darker(images, generator=None):
    return 0.5 * images + torch.linspace(0, 1, images.shape[1], dtype=images.dtype)[:, None, None]


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_value_against_the_formula(stride):
    logits = torch.randn(6, 5, dtype=torch.float64, generator=generator(0))
    images = logits[:, :, None, None]
    rows, changed = logits.tolist(), darker(images).flatten(1).tolist()
    right = [math.log(shares(row)[label]) for row, label in zip(rows, LABELS, strict=True)]
    gaps = [row[label] - max(z for k, z in enumerate(row) if k != label) for row, label in zip(rows, LABELS, strict=True)]
    some = range(0, 6, stride)
    parted = [sum(p * math.log(p / q) for p, q in zip(shares(rows[i]), shares(changed[i]), strict=True)) for i in some]
    expected = -sum(right) / 6 + 0.1 * sum(max(0, 4 - gap) ** 2 for gap in gaps) / 6 + 0.5 * sum(parted) / len(parted)
    net = Pixels()
    terms = Surefoot(view=darker, consistency_stride=stride)(net, images, LABELS)
    assert terms.total.item() == pytest.approx(expected, rel=1e-12)
    assert torch.equal(terms.logits, logits)
    assert net.seen == 6 + len(some)  # what it costs


class Kept(nn.Linear):
    """A linear net that keeps the images that it was given."""

    def forward(self, images):
        self.images = images
        return super().forward(images.flatten(1))


def test_its_view_is_augmix_then_noise_blur_contrast_or_blur_and_noise():
    images = torch.rand(64, 3, 16, 16, generator=generator(1))
    net = Kept(768, 5)
    Surefoot(consistency_stride=2)(net, images, torch.arange(64) % 5, generator=generator(0))
    clean, other = net.images.split([64, 32])  # one pass, for a net without batch norm
    assert torch.equal(clean, images)
    draws = generator(0)
    mixed = AugMixChains(3, 3)(images[::2], draws)
    choice = (4 * torch.rand(32, generator=draws)).long()
    assert set(choice.tolist()) == {0, 1, 2, 3}
    noise, blur, flat = GaussianNoise(0.1), GaussianBlur((0.1, 2.0)), Contrast((0.2, 1.0))
    both = lambda x, draws: noise(blur(x, draws), draws)  # noqa: E731
    last = [view(mixed, draws) for view in (noise, blur, flat, both)]
    expected = torch.stack([last[number][row] for row, number in enumerate(choice.tolist())])
    assert torch.allclose(other, expected, atol=1e-6)


def test_limits(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    plain = CrossEntropy()(net, images, LABELS).total
    assert torch.allclose(Surefoot(margin_weight=0, consistency_weight=0)(net, images, LABELS).total, plain)
    options = {"margin": 1, "view": "blur+noise", "batch_norm": "apart", "consistency_stride": 1}
    same = [each(net, images, LABELS, generator=generator(0)).total for each in (Surefoot(**options), MaCS())]
    assert torch.equal(*same)
    with pytest.raises(SurefootError, match="cross_entropy.* is not finite"):  # as of any method without images
        Surefoot()(net, images[:0], LABELS[:0])
    with pytest.raises(SurefootError, match="consistency_stride must be at least 1, got 0"):
        Surefoot(consistency_stride=0)


def test_batch_norm_keeps_the_statistics_of_clean_images(images):
    """Those of one pass over the batch, whatever the view does."""
    nets = [nn.Sequential(nn.BatchNorm2d(3, momentum=None), nn.Flatten(), nn.Linear(768, 5)) for _ in range(2)]
    Surefoot()(nets[0], images, LABELS, generator=generator(0))
    nets[1](images)
    assert torch.equal(nets[0][0].running_mean, nets[1][0].running_mean)
    assert torch.equal(nets[0][0].running_var, nets[1][0].running_var)
    Surefoot(batch_norm="apart")(nets[1], images, LABELS, generator=generator(0))
    assert not torch.allclose(nets[0][0].running_var, nets[1][0].running_var)
