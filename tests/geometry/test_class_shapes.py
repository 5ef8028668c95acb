"""Dispersion, class margin and the scale transformation (discriminative Def. 3.1, 5.1, Prop. 5.1 to 5.3)."""

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.geometry import class_shapes, hyperplane_distances, margins, scale_transformed
from surefoot.geometry._margins import BLOCK, diameter
from surefoot.models.observing import head_of, observed
from surefoot.objectives.centroids import class_means
from surefoot.objectives.discriminative import boundary_margin, compactness


def test_by_hand():
    """Two classes on a line, boundary at 0: class 0 at 1 and 4, class 1 at -2, -3 and (wrongly) 0.5; class 2 is absent."""
    head = nn.Linear(1, 3)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0], [-1.0], [0.0]]))
        head.bias.copy_(torch.tensor([0.0, 0.0, -100.0]))
    found = class_shapes(head, torch.tensor([[1.0], [4.0], [-2.0], [-3.0], [0.5]]), torch.tensor([0, 0, 1, 1, 1]))
    torch.testing.assert_close(found.dispersions[:2], torch.tensor([3.0, 3.5]))
    torch.testing.assert_close(found.margins[:2], torch.tensor([1.0, 0.5]))
    torch.testing.assert_close(found.signed_margins[:2], torch.tensor([1.0, -0.5]))
    assert found.dispersions[2].isnan()
    assert found.margins[2].isnan()
    assert found.counts.tolist() == [2, 3, 0]


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_diameter_is_exact_over_blocks_and_far_from_the_origin(offset):
    """Against all pairs by differences in float64; the matmul form would be wrong in the first digit at offset 1e4."""
    torch.manual_seed(5)
    points = (torch.randn(2 * BLOCK + 77, 24) * 0.01 + offset).float()
    exact = float(torch.nn.functional.pdist(points.double()).max())
    assert diameter(points) == pytest.approx(exact, rel=1e-3 if offset else 1e-6)
    plain = float(torch.cdist(points, points, compute_mode="use_mm_for_euclid_dist").max())
    assert not offset or abs(plain / exact - 1) > 0.1


def test_the_widest_pair_need_not_hold_the_point_farthest_from_the_mean():
    """Two points 2 apart on one axis, one at 1.7 on the other, all else at the origin; in different blocks."""
    points = torch.zeros(3 * BLOCK, 2)
    points[5, 0], points[BLOCK + 5, 1], points[2 * BLOCK + 5, 0] = 1.0, 1.7, -1.0
    assert diameter(points) == pytest.approx(2, abs=1e-6)


def test_diameter_of_few_and_equal_points():
    assert diameter(torch.rand(1, 4)) == 0
    assert diameter(torch.ones(3 * BLOCK, 2)) == 0
    ring = torch.eye(1100)  # every pair is as far apart as any other
    assert diameter(ring) == pytest.approx(2**0.5, rel=1e-6)


def clusters(radius: float, distance: float) -> tuple[nn.Linear, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three classes on orthogonal axes; centres `distance` from the boundaries, samples on spheres of `radius` around them."""
    head = nn.Linear(3, 3, bias=False).double()
    with torch.no_grad():
        head.weight.copy_(torch.eye(3))
    labels = torch.arange(3).repeat_interleave(50)
    centres = 2**0.5 * distance * torch.eye(3, dtype=torch.float64)
    steps = nn.functional.normalize(torch.randn(75, 3, dtype=torch.float64)).repeat_interleave(2, 0)
    steps[1::2] *= -1  # in pairs, so that the class means are the centres
    return head, centres[labels] + radius * steps, labels, centres


def test_propositions_5_1_and_5_2():
    """Compactness and margin loss 0: dispersion at most 2 delta_v, margin at least delta_d - delta_v, classes apart."""
    head, features, labels, centres = clusters(0.5, 5.0)
    batch = class_means(features, labels, 3)
    torch.testing.assert_close(batch.means, centres)
    assert compactness(features, labels, batch.means, batch, 0.5) < 1e-24
    assert boundary_margin(batch.means, batch.present, head, 5.0) < 1e-12
    found = class_shapes(head, features, labels, batch_size=11)
    assert (found.dispersions <= 2 * 0.5 + 1e-12).all()
    assert (found.dispersions > 0.999).all()  # antipodes are there, so the bound is tight
    assert (found.signed_margins >= 5.0 - 0.5 - 1e-12).all()
    assert torch.equal(found.margins, found.signed_margins)
    apart = torch.cdist(features, features)[labels[:, None] != labels]
    assert float(found.dispersions.max()) < float(apart.min())


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
    residual = sf.load_model("small-resnet", num_classes=4, image_size=16, seed=0)
    with pytest.raises(SurefootError, match="do not scale with its last layer"):
        scale_transformed(residual, images, 2.0)
    with pytest.raises(SurefootError, match="factor must be positive"):
        scale_transformed(feature_net(), images, 0.0)


def test_the_papers_net_qualifies(images):
    """ResNet-18 with a linear layer before the softmax layer: that layer is all that is scaled, whatever comes before."""
    net = sf.load_model("small-resnet", num_classes=4, image_size=16, seed=0, feature_dim=5)
    other = scale_transformed(net, images, 3.0)
    torch.testing.assert_close(other.eval()(images), 3 * net.eval()(images), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_head_in_half_precision(dtype):
    head, features, labels = nn.Linear(4, 3).to(dtype), torch.randn(12, 4), torch.arange(12) % 3
    full = nn.Linear(4, 3)
    full.load_state_dict({name: value.float() for name, value in head.state_dict().items()})
    assert torch.equal(class_shapes(head, features, labels).margins, class_shapes(full, features, labels).margins)
    assert torch.equal(hyperplane_distances(head, features.to(dtype)), hyperplane_distances(full, features.to(dtype).float()))


def test_fine_features_stay_fine():
    features = torch.tensor([[1000.0, 0.0], [1000.0 + 1e-5, 0.0], [0.0, 1.0]], dtype=torch.float64)
    found = class_shapes(nn.Linear(2, 2), features, torch.tensor([0, 0, 1]))
    assert float(found.dispersions[0]) == pytest.approx(1e-5, rel=1e-3)


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
