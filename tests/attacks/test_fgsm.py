import pytest
import torch
from attack_nets import linear_net

from surefoot.attacks import fgsm
from surefoot.errors import SurefootError


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


def test_bad_input():
    with pytest.raises(SurefootError, match="eps must be at least 0, got -1"):
        fgsm(linear_net(), torch.rand(1, 3, 4, 4), torch.tensor([0]), -1)


def test_the_callers_graph_is_not_carried_on():
    images = torch.rand(2, 3, 4, 4, requires_grad=True)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3))
    assert not fgsm(net, images, torch.tensor([0, 1])).requires_grad
