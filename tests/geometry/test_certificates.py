"""Randomised smoothing against the closed form of a linear classifier, and its exact binomial bound."""

import math
from statistics import NormalDist

import pytest
import torch
from torch import nn

from surefoot.errors import SurefootError
from surefoot.geometry import certify, noisy_correct, radius_estimates
from surefoot.geometry.certificates import lower_bound


@pytest.fixture
def halves():
    """Two classes divided by a hyperplane through the cube: f(x) = (w x + b, -(w x + b))."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    with torch.no_grad():
        net[1].weight[1] = -net[1].weight[0]
        net[1].bias[0] = -0.5 * net[1].weight[0].sum()
        net[1].bias[1] = -net[1].bias[0]
    return net


def tail(hits: int, n: int, share: float) -> float:
    """P(at least `hits` of n) for a binomial share."""
    return sum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(hits, n + 1))


@pytest.mark.parametrize(("hits", "n"), [(1, 5), (7, 12), (90, 100), (100, 100)])
def test_the_bound_is_exact(hits, n):
    """Clopper and Pearson: the share at which so many hits or more have probability alpha."""
    bound = float(lower_bound(torch.tensor([hits]), n, 0.01))
    assert tail(hits, n, bound) == pytest.approx(0.01, rel=1e-6)


def test_no_hit_bounds_nothing():
    assert lower_bound(torch.tensor([0]), 10, 0.01).tolist() == [0.0]


def test_closed_form_of_a_linear_classifier(halves):
    """P(class) = Phi(margin / std) and the true radius is the distance to the hyperplane: ours come near from below."""
    images = torch.rand(30, 3, 2, 2)
    weight, bias = halves[1].weight[0].detach(), halves[1].bias[0].detach()
    distances = (images.flatten(1) @ weight + bias) / weight.norm()
    labels, distances = (distances < 0).long(), distances.abs().double()
    std = 0.25
    found = certify(halves, images, labels, std, n0=50, n=2000, alpha=0.001)
    assert (found.values <= distances).float().mean() == 1
    normal = NormalDist()
    for radius, distance, hits in zip(found.values.tolist(), distances.tolist(), found.counts.tolist(), strict=True):
        share = normal.cdf(distance / std)
        assert abs(hits / 2000 - share) <= 5 * (share * (1 - share) / 2000) ** 0.5 + 1 / 2000
        expected = float(lower_bound(torch.tensor([hits]), 2000, 0.001))
        assert radius == pytest.approx(std * max(normal.inv_cdf(expected), 0), abs=1e-9)
    sure = (distances > 0.1) & (distances < 0.4)
    assert (found.values[sure] > 0.6 * distances[sure]).all()
    assert found.largest_radius == pytest.approx(std * normal.inv_cdf(0.001 ** (1 / 2000)))


def test_it_abstains_on_the_boundary(halves):
    """On the hyperplane both classes have probability 1/2; with alpha = 0.001 a prediction is all but impossible."""
    middle = torch.full((8, 3, 2, 2), 0.5)
    found = certify(halves, middle, torch.zeros(8, dtype=torch.long), 0.5, n0=20, n=300)
    assert found.predictions.tolist() == [-1] * 8
    assert found.values.tolist() == [0.0] * 8
    assert found.accuracy(0.0) == 0.0


def test_certified_accuracy_counts_right_answers_of_at_least_the_radius(halves):
    images, labels = torch.rand(20, 3, 2, 2), torch.zeros(20, dtype=torch.long)
    found = certify(halves, images, labels, 0.25, n=400)
    assert found.accuracy(0.0) == pytest.approx(float((found.predictions == 0).float().mean()))
    middle = float(found.values[found.correct].median())
    assert found.accuracy(middle) == pytest.approx(sum(found.values[found.correct] >= middle).item() / 20)
    assert found.accuracy(found.largest_radius + 1e-6) == 0
    wrong = certify(halves, images, 1 - labels, 0.25, n=400)
    assert wrong.accuracy(0.0) + found.accuracy(0.0) <= 1


@pytest.mark.parametrize("batch_size", [7, 40, 1000])
def test_a_certificate_does_not_depend_on_its_batch(halves, batch_size):
    images, labels = torch.rand(5, 3, 2, 2), torch.zeros(5, dtype=torch.long)
    whole = certify(halves, images, labels, 0.25, n0=10, n=150, seed=3)
    parts = certify(halves, images, labels, 0.25, n0=10, n=150, seed=3, batch_size=batch_size)
    assert torch.equal(whole.counts, parts.counts)
    last = certify(halves, images[4:], labels[4:], 0.25, n0=10, n=150, seed=3, indices=torch.tensor([4]))
    assert torch.equal(last.counts, whole.counts[4:])
    other = certify(halves, images, labels, 0.25, n0=10, n=150, seed=4)
    assert not torch.equal(other.counts, whole.counts)


def test_selection_and_estimation_use_their_own_draws(halves):
    """n hits at most: the n0 draws that chose the class are not counted again."""
    found = certify(halves, torch.ones(3, 3, 2, 2), torch.zeros(3, dtype=torch.long), 1e-3, n0=64, n=100)
    assert found.counts.tolist() == [100] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [({"std": 0}, "std must be"), ({"n0": 0}, "n0 must be"), ({"n": 0}, "n must be"), ({"alpha": 1.0}, "alpha must be")],
)
def test_what_is_refused(halves, options, message):
    with pytest.raises(SurefootError, match=message):
        certify(halves, torch.rand(2, 3, 2, 2), torch.tensor([0, 1]), **{"std": 0.25, **options})


class Broken(nn.Module):
    def forward(self, x):
        return x.flatten(1)[:, :3] * torch.nan


def test_what_is_not_a_number_is_not_certified():
    images, labels = torch.rand(2, 1, 2, 2), torch.zeros(2, dtype=torch.long)
    for measure in (certify, noisy_correct, radius_estimates):
        with pytest.raises(SurefootError, match="logits must be finite; 2 of 2|logits must be finite"):
            measure(Broken(), images, labels, 0.1)
