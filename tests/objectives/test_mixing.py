"""Mixup, CutMix and AugMix against timm's parts and plain arithmetic."""

import pytest
import torch
from timm.data.mixup import cutmix_bbox_and_lam, mixup_target
from torch import nn
from torch.nn import functional as F

from surefoot.objectives import AugMix, CrossEntropy, CutMix, Mixup
from surefoot.objectives.mixup import rectangle
from surefoot.seeds import generator

LABELS = torch.arange(6) % 5


class Watching(nn.Module):
    """A linear net that keeps what it was shown."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.shown = nn.Linear(768, 5), []

    def forward(self, images):
        self.shown.append(images)
        return self.layer(images.flatten(1))


def mixing_of(shown, images):
    """The partner and the weight that made each image: the only pair that explains every pixel."""
    for i, image in enumerate(shown):
        if torch.allclose(image, images[i]):
            yield i, 1.0
            continue
        for j, other in enumerate(images):
            gap = (images[i] - other).flatten()
            weight = ((image - other).flatten() @ gap) / (gap @ gap).clamp_min(1e-12)
            if torch.allclose(image, torch.lerp(other, images[i], weight), atol=1e-5):
                yield j, weight.item()
                break


def test_mixup_is_cross_entropy_with_timms_mixed_labels(images):
    net = Watching()
    terms = Mixup(1.0)(net, images, LABELS, generator=generator(0))
    found = list(mixing_of(net.shown[0], images))
    assert len(found) == 6
    weights = [weight for j, weight in found if weight != 1.0]
    assert max(weights) - min(weights) < 1e-4  # one weight for the batch
    partners = torch.tensor([j for j, _ in found])
    assert sorted(partners.tolist()) == list(range(6))
    targets = weights[0] * F.one_hot(LABELS, 5) + (1 - weights[0]) * F.one_hot(LABELS[partners], 5)
    assert terms.total.item() == pytest.approx(F.cross_entropy(terms.logits, targets.float()).item(), rel=1e-4)
    flipped = mixup_target(LABELS, 5, weights[0])  # timm's labels, for its own choice of partners
    ours = weights[0] * F.one_hot(LABELS, 5) + (1 - weights[0]) * F.one_hot(LABELS.flip(0), 5)
    assert torch.allclose(flipped, ours.float(), atol=1e-6)


def test_mixup_weights_follow_beta(images):
    net, weights = Watching(), []
    for seed in range(600):
        net.shown.clear()
        Mixup(0.2)(net, images[:2], LABELS[:2], generator=generator(seed))
        weights += [weight for j, weight in list(mixing_of(net.shown[0], images[:2]))[:1] if j == 1]
    extreme = sum(weight < 0.05 or weight > 0.95 for weight in weights) / len(weights)
    from torch.distributions import Beta

    draws = Beta(0.2, 0.2).sample((100_000,))
    assert extreme == pytest.approx(((draws < 0.05) | (draws > 0.95)).float().mean().item(), abs=0.09)


def test_soft_labels_are_mixed_too(images):
    net = Watching()
    hard = Mixup(1.0)(net, images, LABELS, generator=generator(3)).total
    soft = Mixup(1.0)(net, images, F.one_hot(LABELS, 5).float(), generator=generator(3)).total
    assert torch.allclose(hard, soft)


def test_cutmix_pastes_one_rectangle_and_weighs_by_area(images):
    for seed in range(8):
        net = Watching()
        terms = CutMix(1.0)(net, images, LABELS, generator=generator(seed))
        shown = net.shown[0]
        changed = (shown != images).any(1)
        rows, columns = (changed.any(0).any(1 - d).nonzero().flatten() for d in range(2))
        inside = torch.zeros(16, 16, dtype=torch.bool)
        if len(rows):
            inside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = True
        assert torch.equal(shown[:, :, ~inside], images[:, :, ~inside])
        weight = 1 - inside.float().mean().item()
        same = [(shown[:, :, inside][i] == images[:, :, inside]).flatten(1).all(1).nonzero()[0, 0] for i in range(6)]
        partner = torch.stack(same) if weight < 1 else torch.arange(6)
        expected = weight * F.cross_entropy(terms.logits, LABELS) + (1 - weight) * F.cross_entropy(
            terms.logits, LABELS[partner]
        )
        assert terms.total.item() == pytest.approx(expected.item(), rel=1e-4)


def test_rectangles_have_timms_law():
    """Mean area left, over many draws, against timm's own rectangles for the same weights."""
    ours, theirs = [], []
    import numpy as np

    np.random.seed(0)
    for seed in range(12000):
        weight = (seed + 0.5) / 12000
        rows, columns = rectangle(weight, 32, 32, generator(seed))
        ours.append((rows.stop - rows.start) * (columns.stop - columns.start) / 1024)
        (top, bottom, left, right), _ = cutmix_bbox_and_lam((1, 3, 32, 32), weight)
        theirs.append((bottom - top) * (right - left) / 1024)
    assert torch.tensor(ours).mean().item() == pytest.approx(float(np.mean(theirs)), abs=0.012)
    assert torch.tensor(ours).std().item() == pytest.approx(float(np.std(theirs)), abs=0.012)


def test_the_whole_and_none_of_a_rectangle():
    rows, columns = rectangle(1.0, 32, 32, generator(0))
    assert rows.start == rows.stop
    assert columns.start == columns.stop
    rows, columns = rectangle(0.0, 32, 32, generator(0))
    assert rows.start == 0 or rows.stop == 32
    assert columns.start == 0 or columns.stop == 32


def test_augmix_against_the_formula():
    torch.manual_seed(0)
    images, labels = torch.rand(5, 3, 8, 8, dtype=torch.float64), torch.tensor([0, 1, 2, 2, 1])
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 3)).double()
    views = iter([0.5 * images, 1 - images])
    terms = AugMix(jsd_weight=7.0, view=lambda x, generator=None: next(views))(net, images, labels)
    p = [net(x).softmax(1) for x in (images, 0.5 * images, 1 - images)]
    mean = sum(p) / 3
    shannon = sum((each * (each / mean).log()).sum(1) for each in p) / 3
    expected = -p[0][torch.arange(5), labels].log().mean() + 7 * shannon.mean()
    assert terms.total.item() == pytest.approx(expected.item(), rel=1e-12)
    for a, b in zip(*(torch.autograd.grad(t, list(net.parameters())) for t in (terms.total, expected)), strict=True):
        assert torch.allclose(a, b)


def test_augmix_limits(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    same = AugMix(view=lambda x, generator=None: x)(net, images, LABELS)
    assert same.parts["jensen_shannon"].item() == pytest.approx(0, abs=1e-7)
    assert torch.allclose(AugMix(jsd_weight=0)(net, images, LABELS).total, CrossEntropy()(net, images, LABELS).total)
    far = AugMix(view=lambda x, generator=None: -1e6 * x)(net, images, LABELS)
    assert torch.isfinite(far.total)
    assert far.parts["jensen_shannon"].item() <= torch.log(torch.tensor(3.0)).item() + 1e-6
