"""Every method against a second implementation from its formula, and one contract for all."""

import math

import pytest
import torch
from torch import nn

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


@pytest.mark.parametrize("name", OBJECTIVES.names)
class TestEveryObjective:
    @pytest.fixture
    def net(self):
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, 5))

    def test_terms(self, name, net, images):
        terms = build_objective(name, {})(net, images, torch.arange(6) % 5, generator=generator(0))
        assert terms.total.shape == ()
        assert terms.total.requires_grad
        assert terms.parts
        assert all(value.shape == () and not value.requires_grad for value in terms.parts.values())
        assert torch.equal(terms.logits, net(images))
        terms.total.backward()
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters())

    def test_the_generator_decides(self, name, net, images):
        a, b = (build_objective(name, {})(net, images, torch.arange(6) % 5, generator=generator(1)).total for _ in range(2))
        assert torch.equal(a, b)

    def test_one_image_and_turned_memory(self, name, net, images):
        objective, labels = build_objective(name, {}), torch.arange(6) % 5
        assert torch.isfinite(objective(net, images[:1], labels[:1]).total)
        turned = images.to(memory_format=torch.channels_last)
        same = [objective(net, x, labels, generator=generator(2)).total for x in (images, turned)]
        assert torch.allclose(*same)

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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelSmoothing(1.0), "smoothing must be at least 0 and below 1, got 1.0"),
        (lambda: LabelSmoothing(-0.1), "smoothing must be"),
        (lambda: Focal(-1), "gamma must be at least 0, got -1"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(SurefootError, match=message):
        make()


def test_an_objective_must_define_its_forward(images):
    with pytest.raises(TypeError, match="must define forward"):
        Objective()(nn.Identity(), images, torch.zeros(6, dtype=torch.long))
