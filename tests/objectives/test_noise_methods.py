"""The methods that add noise: one cross-entropy or two, features held still, and an ensemble at test time."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import surefoot as sf
from surefoot.objectives import CleanAndNoisy, CrossEntropy, DiverseNoise, NoisyOnly, RandomSelfEnsemble, Stability
from surefoot.seeds import generator
from surefoot.views import GaussianNoise

LABELS = torch.arange(6) % 5


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(768, 8), nn.Tanh(), nn.Linear(8, 5))


def test_noisy_only_and_diverse_noise(net, images):
    for objective, view in (
        (NoisyOnly(0.06), GaussianNoise(0.06)),
        (DiverseNoise(0.2), GaussianNoise((0.0, 0.2))),
        (RandomSelfEnsemble(0.1), GaussianNoise(0.1)),
    ):
        terms = objective(net, images, LABELS, generator=generator(1))
        expected = F.cross_entropy(net(view(images, generator(1))), LABELS)
        assert terms.total.item() == pytest.approx(expected.item(), rel=1e-6)


def test_clean_and_noisy_is_the_mean_of_both(net, images):
    terms = CleanAndNoisy(0.1)(net, images, LABELS, generator=generator(1))
    noisy = F.cross_entropy(net(GaussianNoise(0.1)(images, generator(1))), LABELS)
    assert terms.total.item() == pytest.approx((F.cross_entropy(net(images), LABELS) + noisy).item() / 2, rel=1e-6)


def test_stability_is_the_mean_distance_of_features(net, images):
    terms = Stability(0.1, weight=3.0)(net, images, LABELS, generator=generator(1))
    clean, noisy = net[:3](images), net[:3](GaussianNoise(0.1)(images, generator(1)))
    distance = sum((a - b).pow(2).sum().sqrt() for a, b in zip(clean, noisy, strict=True)) / 6
    expected = F.cross_entropy(net(images), LABELS) + 3 * distance
    assert terms.total.item() == pytest.approx(expected.item(), rel=1e-5)
    for a, b in zip(*(torch.autograd.grad(t, list(net.parameters())) for t in (terms.total, expected)), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_no_noise_is_cross_entropy(net, images):
    base = CrossEntropy()(net, images, LABELS).total
    for objective in (NoisyOnly(0.0), DiverseNoise(0.0), RandomSelfEnsemble(0.0), CleanAndNoisy(0.0), Stability(0.0)):
        assert torch.allclose(objective(net, images, LABELS).total, base, atol=1e-6)
    still = Stability(0.0)(net, images, LABELS)
    still.total.backward()  # the distance is 0 and its gradient is not NaN
    assert all(torch.isfinite(p.grad).all() for p in net.parameters())


def test_a_view_takes_the_place_of_the_noise(net, images):
    def dark(x, generator=None):
        return 0.3 * x

    for method in (NoisyOnly, DiverseNoise, RandomSelfEnsemble):
        expected = F.cross_entropy(net(0.3 * images), LABELS)
        assert torch.allclose(method(view=dark)(net, images, LABELS).total, expected)


class TestEnsemble:
    def test_it_averages_probabilities_over_draws(self, net, images):
        torch.manual_seed(5)
        answers = RandomSelfEnsemble(0.5, test_draws=7).predictor(net)(images)
        torch.manual_seed(5)
        draws = [net(images + 0.5 * torch.randn(images.shape)).softmax(1) for _ in range(7)]
        assert torch.allclose(answers.softmax(1), sum(draws) / 7, atol=1e-6)
        assert not torch.allclose(answers.softmax(1), net(images).softmax(1), atol=1e-2)

    def test_it_is_what_training_validates_and_a_run_gives(self, digits, tmp_path):
        calls = []
        model = sf.load_model("tiny-resnet", data=digits, seed=0)
        model.register_forward_hook(lambda module, *_: calls.append(module.training))
        objective = RandomSelfEnsemble(test_draws=3)
        run = sf.fit(model, objective, digits, epochs=1, output=tmp_path / "r", progress=False)
        assert calls.count(False) == 3 * -(-len(digits.validation) // 128)
        again = sf.load_run(tmp_path / "r").predictor
        images = next(digits.test.batches(8)).images
        answers = []
        for predictor in (run.predictor, again):
            torch.manual_seed(1)
            answers.append(predictor.eval()(images))
        assert again.draws == 3
        assert torch.equal(*answers)
