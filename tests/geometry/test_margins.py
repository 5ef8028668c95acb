"""Margins of logits and features, dispersion and margin of classes (discriminative Def. 3.1, 5.1, Prop. 5.1, 5.2)."""

import math

import pytest
import torch
from torch import nn

from surefoot.errors import SurefootError
from surefoot.geometry import class_shapes, hyperplane_distances, logit_statistics, margins
from surefoot.geometry._margins import BLOCK, boundary_ratio, diameter
from surefoot.objectives.discriminative import boundary_margin, class_means, compactness


def test_by_hand_with_ties():
    """macs Eq. 3 on a table of logits."""
    logits = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 5.0], [-1.0, -1.0, -2.0], [4.0, 0.0, 1.0]])
    found = margins(nn.Identity(), logits, torch.tensor([0, 1, 2, 2]))
    assert found.tolist() == [1.0, 0.0, -1.0, -3.0]


def test_positive_just_where_the_model_is_right(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 4))
    labels = torch.arange(6) % 4
    assert ((margins(net, images, labels, batch_size=4) > 0) == (net(images).argmax(1) == labels)).all()


def test_logit_statistics_by_hand():
    """macs Tab. 6: norms 5 and 13, largest logits 4 and 12, margins 1 and -7."""
    found = logit_statistics(nn.Identity(), torch.tensor([[3.0, 4.0], [5.0, 12.0]]), torch.tensor([1, 0]), batch_size=1)
    assert found.values.tolist() == [1, -7]
    assert found.norms.tolist() == [5, 13]
    assert found.largest.tolist() == [4, 12]
    assert (found.mean_margin, found.mean_norm, found.mean_largest) == (-3, 9, 8)


def test_distance_is_the_least_move_that_changes_the_prediction():
    """Along the normal of the nearest hyperplane the class changes just behind the distance, and nowhere before it."""
    torch.manual_seed(3)
    head, features = nn.Linear(6, 5).double(), torch.randn(40, 6, dtype=torch.float64)
    distances, before = hyperplane_distances(head, features, batch_size=7), head(features).argmax(1)
    assert (distances > 0).all()
    lengths = (head.weight[before].unsqueeze(1) - head.weight.unsqueeze(0)).norm(dim=2)
    gaps = head(features).gather(1, before.unsqueeze(1)) - head(features)
    nearest = (gaps / lengths).nan_to_num(nan=torch.inf).argmin(1)
    normals = nn.functional.normalize(head.weight[nearest] - head.weight[before])
    assert (head(features + 1.0001 * distances.unsqueeze(1) * normals).argmax(1) == nearest).all()
    for _ in range(50):
        step = nn.functional.normalize(torch.randn_like(features)) * 0.9999 * distances.unsqueeze(1)
        assert torch.equal(head(features + step).argmax(1), before)


def test_distance_is_negative_on_the_wrong_side():
    head = nn.Linear(1, 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        head.bias.copy_(torch.tensor([-2.0, 2.0]))  # the boundary is at 2
    found = hyperplane_distances(head, torch.tensor([[5.0], [0.5]]), torch.tensor([0, 0]))
    torch.testing.assert_close(found, torch.tensor([3.0, -1.5]))


def test_equal_weights_have_no_hyperplane():
    head = nn.Linear(2, 2)
    with torch.no_grad():
        head.weight.copy_(torch.ones(2, 2))
    assert hyperplane_distances(head, torch.rand(3, 2)).tolist() == [torch.inf] * 3


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (torch.rand(0, 3), torch.zeros(0, dtype=torch.long), "images must be at least one image"),
        (torch.rand(2, 3), torch.tensor([0]), "labels must be one for each of 2 images"),
        (torch.rand(2, 3), torch.tensor([0.0, 1.0]), "labels must be whole numbers"),
        (torch.rand(2, 3), torch.tensor([0, 3]), "labels must be in 0 to 2, got 0 to 3"),
        (torch.ones(2, 3, dtype=torch.long), torch.tensor([0, 1]), "images must be floating point"),
    ],
)
def test_what_is_refused(images, labels, message):
    with pytest.raises(SurefootError, match=message):
        margins(nn.Identity(), images, labels)


def test_class_shapes_by_hand():
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


def test_boundary_ratio_by_hand():
    """Distances 1, 4, 2, 3, -0.5 to the boundary at 0, and 1.5, 1.5, 0.5, 1.5, 2 to the means 2.5 and -1.5."""
    head = nn.Linear(1, 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        head.bias.copy_(torch.tensor([0.5, 1.5]))  # the boundary is at 0.5
    features, labels = torch.tensor([[1.5], [4.5], [-1.5], [-2.5], [1.0]]), torch.tensor([0, 0, 1, 1, 1])
    assert boundary_ratio(head, features, labels) == pytest.approx(9.5 / 7)
    with torch.no_grad():
        head.bias.mul_(7)  # Prop. 5.3 scales the bias too
    assert boundary_ratio(head, 7 * features, labels) == pytest.approx(9.5 / 7)
    points = torch.tensor([[0.1], [0.7]]).repeat(1000, 1)
    assert boundary_ratio(head, points, torch.tensor([0, 1]).repeat(1000)) in (math.inf, -math.inf)


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
