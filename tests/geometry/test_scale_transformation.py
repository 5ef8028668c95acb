"""The scale transformation (discriminative Prop. 5.3)."""

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.geometry import class_shapes, margins, scale_transformed
from surefoot.models.last_layer import head_of, observed


def feature_net(bias=True, norm=True, affine=True):
    layers = [nn.Conv2d(3, 8, 3, bias=bias), *([nn.BatchNorm2d(8, affine=affine)] if norm else []), nn.ReLU()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)).double()
    net(torch.rand(30, 3, 16, 16, dtype=torch.float64))
    return net


@pytest.mark.parametrize("options", [{}, {"norm": False}, {"bias": False, "affine": False}, {"norm": False, "bias": False}])
@pytest.mark.parametrize("factor", [0.01, 7.0])
def test_proposition_5_3(images, options, factor):
    """Features, logits, margins and dispersions scale by nu, predicted classes stay, and the given model is not touched."""
    net, images = feature_net(**options), images.double()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    other = scale_transformed(net, images, factor)
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert net.training
    assert other.training
    labels = torch.arange(6) % 4
    more = torch.rand(20, 3, 16, 16, dtype=torch.float64)
    assert torch.equal(net.eval()(more).argmax(1), other.eval()(more).argmax(1))
    torch.testing.assert_close(margins(other, images, labels), factor * margins(net, images, labels))
    shapes = []
    for model in (net, other):
        seen = observed(model, head_of(model, images), images)
        shapes.append(class_shapes(head_of(model, images), seen.features, labels))
    torch.testing.assert_close(shapes[1].dispersions, factor * shapes[0].dispersions)
    torch.testing.assert_close(shapes[1].signed_margins, factor * shapes[0].signed_margins)


def test_a_layer_before_the_features_is_needed(images):
    with pytest.raises(SurefootError, match="needs features that come out of one linear or convolution layer.*no such layer"):
        scale_transformed(nn.Sequential(nn.Flatten(), nn.Linear(768, 4)), images, 2.0)
    for after, name in ((nn.Tanh(), "Tanh"), (nn.LayerNorm(8), "NativeLayerNorm"), (nn.SiLU(), "Silu")):
        net = nn.Sequential(nn.Flatten(), nn.Linear(768, 8), after, nn.Linear(8, 4))
        with torch.no_grad():
            net[1].weight.mul_(1e-6)  # where a smooth activation looks linear
        with pytest.raises(SurefootError, match=f"after its last layer '1' there is {name}"):
            scale_transformed(net, images, 2.0)
    residual = sf.load_model("tiny-resnet", num_classes=4, image_size=16, seed=0)
    with pytest.raises(SurefootError, match="do not scale with its last layer"):
        scale_transformed(residual, images, 2.0)
    with pytest.raises(SurefootError, match="factor must be positive"):
        scale_transformed(feature_net(), images, 0.0)


def test_the_papers_net_qualifies(images):
    """ResNet-18 with a linear layer before the softmax layer: that layer is all that is scaled, whatever comes before."""
    net = sf.load_model("tiny-resnet", num_classes=4, image_size=16, seed=0, feature_dim=5)
    other = scale_transformed(net, images, 3.0)
    torch.testing.assert_close(other.eval()(images), 3 * net.eval()(images), rtol=1e-4, atol=1e-4)


def test_a_head_that_was_changed_is_found_again():
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 3))
    images = torch.rand(4, 3, 2, 2)
    assert head_of(net, images) is net[3]
    net[3] = nn.Sequential(nn.Dropout(), nn.Linear(6, 3))
    assert head_of(net, images) is net[3][1]
    net.append(nn.Linear(3, 5))
    assert head_of(net, images) is net[4]
    net[4] = nn.Linear(3, 7)
    assert head_of(net, images) is net[4]
