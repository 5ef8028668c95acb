"""Minimum-loss points and class means against loops and known directions."""

import math

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.geometry import (
    centre_correlations,
    centre_stability,
    class_centres,
    class_means,
    confidence_correlation,
)


def linear(classes, dimensions, bias=True, seed=0):
    torch.manual_seed(seed)
    return nn.Linear(dimensions, classes, bias=bias, dtype=torch.float64)


def descend_by_autograd(head, label, learning_rate, steps, schedule, smoothing):
    """torch's own SGD and scheduler on one class."""
    point = torch.zeros(head.in_features, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([point], lr=learning_rate)
    course = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps) if schedule == "cosine" else None
    for _ in range(steps):
        optimiser.zero_grad()
        logits = head(point[None])
        nn.functional.cross_entropy(logits, torch.tensor([label]), label_smoothing=smoothing).backward()
        optimiser.step()
        if course:
            course.step()
    return point.detach()


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize(("classes", "dimensions"), [(4, 6), (9, 3)])  # by coefficients, and in the space itself
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_as_sgd_on_every_class(classes, dimensions, schedule, smoothing):
    head = linear(classes, dimensions)
    found = class_centres(head, 0.3, 25, schedule, smoothing, batch_size=3)
    for label in range(classes):
        expected = descend_by_autograd(head, label, 0.3, 25, schedule, smoothing)
        torch.testing.assert_close(found[label], expected)


def test_orthonormal_weights_keep_the_known_direction():
    """The path stays on w_y - mean of the others."""
    head = nn.Linear(7, 5, bias=False, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.linalg.qr(torch.randn(7, 7, dtype=torch.float64))[0][:5])
    for steps in (1, 200):
        centres = class_centres(head, steps=steps)
        others = (head.weight.sum(0) - head.weight) / 4
        cosine = nn.functional.cosine_similarity(centres, head.weight - others)
        torch.testing.assert_close(cosine, torch.ones(5, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_theorem_1(bias):
    """Along a ray on which class y leads: a finite best norm for soft labels, none for hard ones (Eq. 15-18)."""
    head = linear(6, 4, bias)
    with torch.no_grad():
        head.weight.div_(head.weight.norm(dim=1, keepdim=True))
    ray = head.weight[2].detach()
    radii = torch.linspace(0, 200, 4001, dtype=torch.float64)
    log_p = head(radii[:, None] * ray).log_softmax(1).detach()
    hard = -log_p[:, 2]
    assert (hard[1:] <= hard[:-1]).all()
    assert hard[:200].diff().max() < 0
    for smoothing in (0.1, 0.3):
        target = torch.full((6,), smoothing / 6, dtype=torch.float64)
        target[2] += 1 - smoothing
        loss = -(log_p @ target)
        best = int(loss.argmin())
        assert 0 < best < 2000
        assert loss[-1] > loss[best] + 1
        slope = head.weight @ ray @ (log_p[best].exp() - target)  # Eq. 18 at the best of the grid
        assert abs(float(slope.detach())) < 0.02


def test_more_steps_lengthen_hard_centres_and_soft_ones_settle():
    head = linear(5, 8)
    with torch.no_grad():
        head.weight.mul_(4)
    hard = [float(class_centres(head, 1.0, steps).norm(dim=1).min()) for steps in (2000, 4000)]
    soft = [class_centres(head, 1.0, steps, smoothing=0.2) for steps in (2000, 4000)]
    assert hard[1] > 1.02 * hard[0]
    torch.testing.assert_close(soft[0], soft[1], rtol=1e-6, atol=1e-9)


def test_half_precision_and_no_gradient():
    head = linear(3, 4).half()
    centres = class_centres(head)
    assert centres.dtype == torch.float32
    assert not centres.requires_grad
    assert head.weight.grad is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 0}, "steps"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"schedule": "cosinus"}, "cosine"),
        ({"smoothing": 1.0}, "smooth"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(SurefootError, match=words):
        class_centres(linear(3, 4), **options)


def test_class_means_by_hand():
    features = torch.tensor([[1.0, 0.0], [3.0, 2.0], [9.0, 9.0], [5.0, 5.0]])
    labels, predicted = torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 1])
    means = class_means(features, labels, predicted, num_classes=3, batch_size=3)
    assert means[:2].tolist() == [[2.0, 1.0], [5.0, 5.0]]
    assert means[2].isnan().all()
    logits = nn.functional.one_hot(predicted, 3).float()
    predictions = sf.Predictions.from_logits(logits, labels)
    assert torch.equal(class_means(features, labels, predictions).nan_to_num(), means.nan_to_num())


def correlation_by_loop(head, features, centres):
    cosines, confidences = [], []
    for feature in features:
        p = head(feature).softmax(0)
        centre = centres[int(p.argmax())]
        cosines.append(float(feature @ centre / feature.norm() / centre.norm()))
        confidences.append(float(p.max()))
    n, mx, my = len(cosines), sum(cosines) / len(cosines), sum(confidences) / len(confidences)
    over = sum((x - mx) * (y - my) for x, y in zip(cosines, confidences, strict=True)) / n
    sx = math.sqrt(sum((x - mx) ** 2 for x in cosines) / n)
    return over / sx / math.sqrt(sum((y - my) ** 2 for y in confidences) / n)


def test_correlations_as_by_loop():
    head, features = linear(4, 6), 3 * torch.randn(200, 6, dtype=torch.float64)
    labels = torch.randint(4, (200,))
    found = centre_correlations(head, features, labels, batch_size=7)
    predicted = head(features).argmax(1)
    means = torch.stack([features[(predicted == c) & (labels == c)].mean(0) for c in range(4)])
    with torch.no_grad():
        expected = [correlation_by_loop(head, features, points) for points in (means, head.weight, class_centres(head))]
    assert found.kinds == ("class mean", "weight vector", "minimum-loss point")
    assert found.values.tolist() == pytest.approx(expected)
    assert confidence_correlation(head, features, {"weights": head.weight}).values.tolist() == pytest.approx(expected[1:2])


def test_a_class_without_a_mean_is_left_out():
    head, features = linear(4, 6), torch.randn(50, 6, dtype=torch.float64)
    centres = head.weight.detach().clone()
    gone = int(head(features).argmax(1).mode().values)
    centres[gone] = torch.nan
    kept = head(features).argmax(1) != gone
    with_gap = confidence_correlation(head, features, {"a": centres}).values
    without = confidence_correlation(head, features[kept], {"a": head.weight}).values
    torch.testing.assert_close(with_gap, without)


def test_stable_over_the_configurations_of_table_9():
    head, features = linear(10, 64), torch.randn(200, 64, dtype=torch.float64)
    found = centre_stability(head, features)
    assert len(found.values) == 18
    assert list(zip(found.schedules, found.learning_rates, found.steps, strict=True))[5] == ("constant", 0.01, 200)
    assert found.least_cosine[5] == pytest.approx(1)
    assert found.least_cosine.min() > 0.9
    assert (found.mean_cosine >= found.least_cosine).all()
    usual = confidence_correlation(head, features, {"a": class_centres(head)})
    assert found.values[5] == pytest.approx(float(usual.values[0]))
    assert float(found.values.max() - found.values.min()) < 0.05
