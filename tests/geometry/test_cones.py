"""Cone index and bias dependence against loops, and their limits."""

import pytest
import torch
from torch import nn

from surefoot.errors import SurefootError
from surefoot.geometry import bias_dependence, cone_index, stepped_cone_index


def linear(classes=7, dimensions=5, bias=1.0, seed=0):
    torch.manual_seed(seed)
    head = nn.Linear(dimensions, classes, dtype=torch.float64)
    with torch.no_grad():
        head.bias.mul_(bias)
    return head


def stepped_by_loop(head, feature, steps):
    first = int(head(feature).argmax())
    for step in range(1, steps):
        if int(head((1 - step / steps) * feature).argmax()) != first:
            return step
    return steps


def test_stepped_as_by_loop():
    head, features = linear(bias=3.0), torch.randn(40, 5, dtype=torch.float64)
    found = stepped_cone_index(head, features, 20, batch_size=7)
    assert found.values.tolist() == [stepped_by_loop(head, feature, 20) for feature in features]
    assert 0 < found.full < 1


@pytest.mark.parametrize("bias", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_exact_and_stepped_agree_to_a_step(bias, seed):
    head, features = linear(bias=bias, seed=seed), torch.randn(300, 5, dtype=torch.float64)
    exact, stepped = cone_index(head, features, batch_size=64), stepped_cone_index(head, features)
    ahead = stepped.values - exact.values
    assert float(ahead.min()) >= -1e-9
    assert float(ahead.max()) <= 1 + 1e-9
    assert exact.values.min() < 90  # some cones are cut


def test_class_changes_just_at_the_exact_index():
    head, features = linear(bias=5.0), torch.randn(100, 5, dtype=torch.float64)
    found = cone_index(head, features)
    cut = found.values < 99.9
    assert int(cut.sum()) > 10
    scale = 1 - found.values[cut, None] / 100
    classes = head(features[cut]).argmax(1)
    assert torch.equal(head(features[cut] * (scale + 1e-9)).argmax(1), classes)
    assert (head(features[cut] * (scale - 1e-9)).argmax(1) != classes).all()


def test_by_hand():
    """Leads of 3 t - 1 over the other class: it ends at t = 1/3."""
    head = nn.Linear(1, 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[3.0], [0.0]]))
        head.bias.copy_(torch.tensor([0.0, 1.0]))
    assert cone_index(head, torch.ones(1, 1)).values.tolist() == pytest.approx([200 / 3], rel=1e-5)
    assert stepped_cone_index(head, torch.ones(1, 1)).values.tolist() == [67]
    assert cone_index(head, -torch.ones(1, 1)).values.tolist() == [100]


@pytest.mark.parametrize("bias", [True, False])
def test_zero_bias_gives_a_full_cone(bias):
    head = nn.Linear(5, 7, bias=bias)
    if bias:
        nn.init.constant_(head.bias, 0.7)  # the same for all is none
    features = torch.randn(50, 5)
    for found in (cone_index(head, features), stepped_cone_index(head, features)):
        assert found.values.tolist() == [100.0] * 50
        assert (found.mean, found.std, found.full) == (100, 0, 1)


def test_wrong_arguments():
    with pytest.raises(SurefootError, match="steps must be at least 1"):
        cone_index(nn.Linear(5, 7), torch.randn(2, 5), steps=0)
    with pytest.raises(SurefootError, match="features must be images x 5 dimensions"):
        cone_index(nn.Linear(5, 7), torch.randn(2, 4))


def test_bias_dependence_as_by_loop():
    head = linear(4, 5, bias=0.5)
    features, labels = torch.randn(300, 5, dtype=torch.float64), torch.randint(3, (300,))
    found = bias_dependence(head, features, labels, batch_size=9)
    right, changed = [0] * 4, [0] * 4
    for feature, label in zip(features, labels.tolist(), strict=True):
        if int(head(feature).argmax()) == label:
            right[label] += 1
            changed[label] += int((head.weight @ feature).argmax()) != label
    shares = [c / r for c, r in zip(changed[:3], right[:3], strict=True)]
    assert found.values[:3].tolist() == pytest.approx(shares)
    assert found.values[3].isnan()
    assert found.mean == pytest.approx(sum(shares) / 3)
    assert found.largest == pytest.approx(max(shares)) != 0
    sizes = head.bias.detach().abs()
    assert found.bias_mean == pytest.approx(float(sizes.mean()))
    assert found.bias_std == pytest.approx(float(sizes.std(correction=0)))
    assert found.bias_largest == pytest.approx(float(sizes.max()))


def test_nothing_depends_on_a_bias_that_is_not_there():
    found = bias_dependence(nn.Linear(5, 3, bias=False), torch.randn(60, 5), torch.randint(3, (60,)))
    assert (found.mean, found.largest, found.bias_mean) == (0, 0, 0)


def test_a_class_that_lives_on_its_bias():
    """Weight 0 and a large bias: all of its predictions need the bias (Fig. 9c)."""
    head = nn.Linear(2, 3)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]))
        head.bias.copy_(torch.tensor([0.0, 0.0, 2.0]))
    features = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.5, 0.0], [-0.5, 0.0]])
    found = bias_dependence(head, features, torch.tensor([0, 1, 2, 2]))
    assert found.values.tolist() == [0, 0, 1]
