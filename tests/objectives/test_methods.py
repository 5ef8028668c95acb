"""Every method against a second implementation from its formula, and one contract for all."""

import math
import re

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.objectives import CrossEntropy, Focal, LabelSmoothing, Objective
from surefoot.objectives.methods import OBJECTIVES, build_objective
from surefoot.seeds import generator


def plain(logits, labels, target_of):
    """Mean over images of a formula of (probabilities, label), with Python's own arithmetic."""
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        top = max(row)
        shares = [math.exp(z - top) for z in row]
        total += target_of([share / sum(shares) for share in shares], label)
    return total / len(labels)


FORMULAS = [
    (CrossEntropy(), lambda p, y: -math.log(p[y])),
    (LabelSmoothing(0.1), lambda p, y: -sum((0.9 * (k == y) + 0.1 / len(p)) * math.log(q) for k, q in enumerate(p))),
    (LabelSmoothing(0.4), lambda p, y: -sum((0.6 * (k == y) + 0.4 / len(p)) * math.log(q) for k, q in enumerate(p))),
    (Focal(2.0), lambda p, y: -((1 - p[y]) ** 2) * math.log(p[y])),
    (Focal(0.5), lambda p, y: -((1 - p[y]) ** 0.5) * math.log(p[y])),
]


@pytest.mark.parametrize(("objective", "formula"), FORMULAS)
def test_value_and_gradient_against_the_formula(objective, formula):
    draws = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 4, dtype=torch.float64, generator=draws).requires_grad_()
    labels = torch.tensor([0, 3, 1, 2, 2])
    terms = objective(nn.Identity(), logits, labels)
    assert terms.total.item() == pytest.approx(plain(logits, labels, formula), rel=1e-12)
    terms.total.backward()
    step = 1e-6
    for i in range(5):
        for k in range(4):
            change = torch.zeros(5, 4, dtype=torch.float64)
            change[i, k] = step
            slope = (plain(logits + change, labels, formula) - plain(logits - change, labels, formula)) / (2 * step)
            assert logits.grad[i, k].item() == pytest.approx(slope, abs=1e-7)


def test_limits(images):
    net, labels = nn.Sequential(nn.Flatten(), nn.Linear(768, 5)), torch.arange(6) % 5
    base = CrossEntropy()(net, images, labels).total
    assert torch.allclose(Focal(0.0)(net, images, labels).total, base)
    assert torch.allclose(LabelSmoothing(0.0)(net, images, labels).total, base)


def test_focal_has_a_gradient_where_the_model_is_certain():
    for gamma in (0.0, 0.5, 2.0):
        logits = torch.tensor([[1e4, -1e4], [-1e4, 1e4]], requires_grad=True)
        Focal(gamma)(nn.Identity(), logits, torch.tensor([0, 0])).total.backward()
        assert torch.isfinite(logits.grad).all()


TRAINS_ON_CHANGED_IMAGES = {"mixup", "cutmix", "noisy", "diverse-noise", "rse", "adversarial"}


@pytest.mark.parametrize("name", OBJECTIVES.names)
class TestEveryObjective:
    @pytest.fixture
    def net(self):
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, 5))

    def test_terms(self, name, net, images):
        before = images.clone()
        terms = build_objective(name, {})(net, images, torch.arange(6) % 5, generator=generator(0))
        assert terms.total.shape == ()
        assert terms.total.requires_grad
        assert terms.parts
        assert all(value.shape == () and not value.requires_grad for value in terms.parts.values())
        assert torch.allclose(terms.logits, net(images), atol=1e-6) != (name in TRAINS_ON_CHANGED_IMAGES)
        assert torch.equal(images, before)
        assert net.training
        assert all(p.requires_grad and p.grad is None for p in net.parameters())
        terms.total.backward()
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters())

    def test_the_generator_decides(self, name, net, images):
        a, b = (build_objective(name, {})(net, images, torch.arange(6) % 5, generator=generator(1)).total for _ in range(2))
        assert torch.equal(a, b)

    def test_one_image_and_turned_memory(self, name, net, images):
        objective, labels = build_objective(name, {}), torch.arange(6) % 5
        assert torch.isfinite(objective(net, images[:1], labels[:1], generator=generator(2)).total)
        turned = images.to(memory_format=torch.channels_last)
        objectives = [build_objective(name, {}) for _ in range(2)]
        same = [o(net, x, labels, generator=generator(2)).total for o, x in zip(objectives, (images, turned), strict=True)]
        assert torch.allclose(*same, atol=1e-5)

    def test_one_channel_and_half_precision_logits(self, name, images):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(256, 8), nn.ReLU(), nn.Linear(8, 5))
        with torch.autocast("cpu", torch.bfloat16):
            terms = build_objective(name, {})(net, images[:, :1], torch.arange(6) % 5, generator=generator(0))
        assert torch.isfinite(terms.total)

    def test_batch_norm(self, name, images):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
        build_objective(name, {})(net, images, torch.arange(6) % 5, generator=generator(0)).total.backward()
        tracked = int(net[1].num_batches_tracked)
        passes = {
            "macs": 2,
            "magnma": 11,
            "dign": 6,
            "discriminative": 2,
            "stability": 2,
            "clean-and-noisy": 2,
            "trades": 2,
        }
        assert tracked == passes.get(name, 1)  # an attack leaves no trace, and AugMix sees all together, with MaCS too

    def test_a_batch_of_one_with_batch_norm(self, name, images):
        net = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 5))
        if name in ("augmix", "macs-augmix"):  # sees several images together
            return
        with pytest.raises(SurefootError, match="images must be at least 2 to train a model with batch norm, got 1") as caught:
            build_objective(name, {})(net, images[:1], torch.tensor([0]))
        assert "\n" not in str(caught.value)

    def test_logits_that_are_not_numbers(self, name, net, images):
        net[1].weight.data[0] = float("nan")
        with pytest.raises(SurefootError, match="not finite"):
            build_objective(name, {})(net, images, torch.arange(6) % 5)

    def test_options_make_it_again(self, name, net):
        objective = build_objective(name, {})
        assert build_objective(name, objective.options()).options() == objective.options()

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            (torch.tensor([0, 1, 2, 3, 4, 5]), "labels must be in 0 to 4, got 0 to 5"),
            (torch.tensor([0, 1, 2, 3, 4, -1]), "labels must be in 0 to 4, got -1 to 4"),
            (torch.rand(6), "labels must be whole numbers"),
            (torch.tensor([0, 1]), "labels must be one for each of 6 images"),
        ],
    )
    def test_bad_labels(self, name, net, images, labels, message):
        with pytest.raises(SurefootError, match=message):
            build_objective(name, {})(net, images, labels)


BAD = [
    (lambda: LabelSmoothing(1.0), "smoothing must be at least 0 and below 1, got 1.0"),
    (lambda: LabelSmoothing(-0.1), "smoothing must be"),
    (lambda: Focal(-1), "gamma must be at least 0, got -1"),
    (lambda: sf.objectives.Mixup(0), "alpha must be positive, got 0"),
    (lambda: sf.objectives.CutMix(-1), "alpha must be positive, got -1"),
    (lambda: sf.objectives.AugMix(jsd_weight=-1), "jsd_weight must be at least 0, got -1"),
    (lambda: sf.objectives.AugMix(severity=11), "severity must be in"),
    (lambda: sf.objectives.AugMix(width=0), "width must be at least 1, got 0"),
    (lambda: sf.objectives.MaCS(margin=-1), "margin must be at least 0, got -1"),
    (lambda: sf.objectives.MaCS(margin_weight=-0.1), "margin_weight must be at least 0, got -0.1"),
    (lambda: sf.objectives.MaCS(consistency_weight=-1), "consistency_weight must be"),
    (lambda: sf.objectives.MaCS(consistency_stride=0), "consistency_stride must be at least 1, got 0"),
    (lambda: sf.objectives.MaCS(batch_norm="both"), "Unknown batch_norm 'both'"),
    (lambda: sf.objectives.MaCS(view="nose"), "Unknown view 'nose'. Did you mean 'noise'?"),
    (lambda: sf.objectives.MaCS(view=3), "view must be a name, a mapping, a list of views or a callable, got 3"),
    (lambda: sf.objectives.MaCSAugMix(jsd_weight=-2), "jsd_weight must be at least 0, got -2"),
    (lambda: sf.objectives.MAGNMA(samples=0), "samples must be at least 1, got 0"),
    (lambda: sf.objectives.MAGNMA(noise_weight=-1), "noise_weight must be"),
    (lambda: sf.objectives.MAGNMA(beta=0), "beta must be positive, got 0"),
    (lambda: sf.objectives.Discriminative(radius=-1), "radius must be at least 0, got -1"),
    (lambda: sf.objectives.Discriminative(momentum=1.0), "momentum must be at least 0 and below 1, got 1.0"),
    (lambda: sf.objectives.Discriminative(centroids="mean"), "Unknown centroids 'mean'"),
    (lambda: sf.objectives.Stability(weight=-1), "weight must be at least 0, got -1"),
    (lambda: sf.objectives.NoisyOnly(-0.1), "noise_std must be at least 0, got -0.1"),
    (lambda: sf.objectives.DiverseNoise(-0.1), "max_std must be at least 0, got -0.1"),
    (lambda: sf.objectives.RandomSelfEnsemble(test_draws=0), "test_draws must be at least 1, got 0"),
    (lambda: sf.objectives.AdversarialTraining(eps=-1), "eps must be at least 0, got -1"),
    (lambda: sf.objectives.TRADES(steps=0), "steps must be at least 1, got 0"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_options(make, message):
    with pytest.raises(SurefootError, match=re.escape(message)):
        make()


def test_an_objective_must_define_its_forward(images):
    with pytest.raises(TypeError, match="must define forward"):
        Objective()(nn.Identity(), images, torch.zeros(6, dtype=torch.long))
