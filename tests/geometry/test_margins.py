import pytest
import torch
from torch import nn

from surefoot.errors import SurefootError
from surefoot.geometry import hyperplane_distances, logit_statistics, margins


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


def test_distance_is_the_least_move_that_changes_the_answer():
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
