import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.errors import SurefootError


class Foreign(nn.Module):
    """A net that has never heard of Surefoot, with linear layers that are not its last."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3 * 8 * 8, 12)
        self.gate = nn.Linear(12, 5)
        self.out = nn.Linear(12, 5)

    def forward(self, x):
        hidden = self.embed(x.flatten(1)).relu()
        self.gate(hidden)
        return self.out(hidden)


def test_normalisation_is_inside():
    net = Foreign()
    model = sf.adapt(net, mean=(0.1, 0.2, 0.3), std=(0.5, 1.0, 2.0), image_size=8)
    images = torch.rand(4, 3, 8, 8)
    scaled = (images - torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1)) / torch.tensor([0.5, 1.0, 2.0]).view(3, 1, 1)
    assert torch.equal(model(images), net(scaled))


def test_head_and_features():
    net = Foreign()
    model = sf.adapt(net, 0, 1, 8)
    assert model.head is net.out
    assert (model.num_classes, model.feature_dim, model.head_name) == (5, 12, "out")
    images = torch.rand(4, 3, 8, 8)
    found = model.outputs(images)
    assert torch.equal(model.head(found.features), found.logits)
    assert torch.equal(found.logits, model(images))
    assert torch.equal(model.features(images), found.features)


def test_layers_that_take_their_size_from_the_first_images():
    layers = [nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5)]
    assert sf.adapt(nn.Sequential(*layers), 0.5, 0.25, (8, 8)).num_classes == 5


def test_observing_leaves_no_hook_and_keeps_the_mode():
    net = Foreign().train()
    model = sf.adapt(net, 0, 1, 8)
    model.features(torch.rand(1, 3, 8, 8)).sum().backward()
    assert net.training
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in net.modules())
    assert net.embed.weight.grad is not None


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(192, 5), nn.Softmax(1)), "must end in one linear layer"),
        (nn.Conv2d(3, 5, 3), "images x classes"),
    ],
)
def test_other_endings_are_refused(module, message):
    with pytest.raises(SurefootError, match=message):
        sf.adapt(module, 0, 1, 8)


def test_wrong_normalisation():
    with pytest.raises(SurefootError, match=r"mean must be one number or 3, got \(1, 2\)"):
        sf.adapt(Foreign(), (1, 2), 1, 8)
    with pytest.raises(SurefootError, match="std must be positive"):
        sf.adapt(Foreign(), 0, 0, 8)
