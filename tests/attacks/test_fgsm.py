import pytest
import torch
from torch import nn

from surefoot.attacks import evaluate, fgsm
from surefoot.attacks.presets import ATTACKS
from surefoot.errors import SurefootError, UnknownName


def linear_net(classes=2, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, classes))


def test_closed_form_on_a_linear_model():
    """For two classes the worst L-inf step on x is eps * sign(w_other - w_label)."""
    net = linear_net().double()
    images = torch.rand(8, 3, 4, 4, dtype=torch.float64) * 0.5 + 0.25
    labels = torch.arange(8) % 2
    weight = net[1].weight.detach()
    step = torch.where(labels.bool().unsqueeze(1), weight[0] - weight[1], weight[1] - weight[0]).sign()
    assert torch.allclose(fgsm(net, images, labels, 0.1), images + 0.1 * step.view_as(images), atol=1e-12)


@pytest.mark.parametrize("eps", [0.0, 2 / 255, 0.3, 1.0])
def test_in_the_ball_and_in_the_box(eps):
    images, labels = torch.rand(5, 3, 4, 4), torch.tensor([0, 1, 0, 1, 0])
    found = fgsm(linear_net(), images, labels, eps)
    assert (found - images).abs().max() <= eps + 1e-6
    assert found.min() >= 0
    assert found.max() <= 1
    if eps == 0:
        assert torch.equal(found, images)


@pytest.mark.parametrize("name", ATTACKS.names)
def test_the_model_is_left_as_it_was(name):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))
    net[1].eval()
    net[0].weight.requires_grad_(False)
    net[4].bias.grad = torch.ones(3)
    state = {key: value.clone() for key, value in net.state_dict().items()}
    modes = [layer.training for layer in net.modules()]
    ATTACKS.load(name)(net, torch.rand(4, 3, 4, 4), torch.tensor([0, 1, 2, 0]))
    with pytest.raises(SurefootError):
        ATTACKS.load(name)(net, torch.rand(4, 3, 4, 4), torch.tensor([0, 1, 2, 9]))
    assert [layer.training for layer in net.modules()] == modes
    assert [p.requires_grad for p in net.parameters()] == [False, True, True, True, True, True]
    assert net[4].weight.grad is None
    assert net[4].bias.grad.equal(torch.ones(3))
    assert all(value.equal(state[key]) for key, value in net.state_dict().items())


def test_rates_by_hand():
    """An attack that turns the first pixel off breaks just the images that are right because of it."""

    class Pixel(nn.Module):
        def forward(self, x):
            bright = x[:, 0, 0, 0] - 0.5
            return torch.stack([-bright, bright], 1)

    images = torch.zeros(4, 1, 2, 2)
    images[:3, 0, 0, 0] = 1  # predicted 1, 1, 1, 0
    labels = torch.tensor([1, 1, 0, 0])
    seen = []

    def attack(model, images, labels):
        seen.append(len(images))
        return torch.zeros_like(images)

    found = evaluate(Pixel(), images, labels, attack)
    assert seen == [3]
    assert found.broken.tolist() == [True, True, False, False]
    assert found.success_rate == pytest.approx(2 / 3)
    assert found.robust_accuracy == pytest.approx(1 / 4)


def test_batches_do_not_matter():
    net, images = linear_net(3), torch.rand(9, 3, 4, 4)
    labels = net(images).argmax(1)
    one, many = (evaluate(net, images, labels, "fgsm", batch_size=size) for size in (9, 2))
    assert one.broken.equal(many.broken)


def test_bad_input():
    with pytest.raises(SurefootError, match="eps must be at least 0, got -1"):
        fgsm(linear_net(), torch.rand(1, 3, 4, 4), torch.tensor([0]), -1)
    with pytest.raises(UnknownName, match=r"Unknown attack 'fsgm'\. Did you mean 'fgsm'"):
        evaluate(linear_net(), torch.rand(1, 3, 4, 4), torch.tensor([0]), "fsgm")
    with pytest.raises(SurefootError, match="images must be at least one"):
        evaluate(linear_net(), torch.rand(0, 3, 4, 4), torch.zeros(0, dtype=torch.long), "fgsm")
