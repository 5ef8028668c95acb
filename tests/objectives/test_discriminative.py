"""The discriminative loss against its equations in plain Python, and what the paper says of its centroids."""

import pytest
import torch
from torch import nn

from surefoot.errors import SurefootError
from surefoot.objectives import Discriminative
from surefoot.objectives.discriminative import AUTHORS, boundary_margin
from surefoot.seeds import generator


class Features(nn.Module):
    """Pixels are the features: a linear head on the flattened image."""

    def __init__(self, weight, bias=None, scale=1.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale, dtype=weight.dtype))  # stands for the backbone
        self.head = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, dtype=weight.dtype)
        self.head.weight.data.copy_(weight)
        if bias is not None:
            self.head.bias.data.copy_(bias)

    def forward(self, images):
        return self.head(self.scale * images.flatten(1))


def plain_terms(q, noisy, labels, weight, bias, near, far, radius, distance):
    """Eq. 8 to 12, class by class; `near` and `far` are dictionaries of centroids."""
    classes = sorted(set(labels.tolist()))
    compact = noisy_part = margin = regulariser = 0.0
    for c in classes:
        members = [i for i, y in enumerate(labels.tolist()) if y == c]
        for i in members:
            compact = compact + torch.relu((near[c] - q[i]).norm() - radius) ** 2 / len(members)
            noisy_part = noisy_part + torch.relu((near[c] - noisy[i]).norm() - radius) ** 2 / len(members)
        costs = []
        for i in range(len(weight)):
            if i != c:
                across = weight[c] - weight[i]
                d = (across @ far[c] + bias[c] - bias[i]).abs() / across.norm()
                z = weight @ far[c] + bias
                costs.append(torch.relu(distance + d * torch.sign(z[i] - z[c])))
        margin = margin + torch.stack(costs).max(0).values
        regulariser = regulariser + far[c].norm()
    return {
        "compact": compact / len(classes),
        "margin": margin / len(classes),
        "regulariser": regulariser / len(classes),
        "noisy": noisy_part / len(classes),
    }


@pytest.mark.parametrize("centroids", ["partial", "momentum", "batch"])
@pytest.mark.parametrize("radius", [0.0, 0.5])
def test_values_and_gradients_against_the_equations(centroids, radius):
    draws = generator(0)
    weight, bias = torch.randn(4, 3, dtype=torch.float64, generator=draws), torch.randn(4, dtype=torch.float64, generator=draws)
    net = Features(weight, bias)
    images = 3 * torch.rand(7, 3, 1, 1, dtype=torch.float64, generator=draws)
    labels = torch.tensor([0, 3, 3, 0, 1, 3, 0])  # class 2 is missing, class 1 has one image
    objective = Discriminative(radius=radius, centroids=centroids, view=lambda x, generator=None: x + 0.3, distance=2.0)
    objective.prepare(4, 3)
    objective.double()
    old = torch.randn(4, 3, dtype=torch.float64, generator=draws)
    objective.centroid_table.copy_(old)
    objective.seen.copy_(torch.tensor([True, True, True, False]))
    terms = objective(net, images, labels)

    q = net.scale * images.flatten(1)
    noisy = net.scale * (images + 0.3).flatten(1)
    batch = {c: q[labels == c].mean(0) for c in (0, 1, 3)}
    moving = {c: 0.9 * old[c] + 0.1 * batch[c] if c != 3 else batch[3] for c in (0, 1, 3)}
    near = batch if centroids == "batch" else moving
    far = moving if centroids == "momentum" else batch
    plain = plain_terms(q, noisy, labels, net.head.weight, net.head.bias, near, far, radius, 2.0)
    for name, value in plain.items():
        assert terms.parts[name].item() == pytest.approx(value.item(), rel=1e-10), name
    cross_entropy = nn.functional.cross_entropy(net(images), labels)
    total = cross_entropy + plain["compact"] + plain["margin"] + 1e-3 * plain["regulariser"] + plain["noisy"]
    assert terms.total.item() == pytest.approx(total.item(), rel=1e-10)
    ours = torch.autograd.grad(terms.total, list(net.parameters()))
    theirs = torch.autograd.grad(total, list(net.parameters()))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-8, atol=1e-10)
    for c in range(4):  # clean data only, absent classes untouched
        assert torch.allclose(objective.centroid_table[c], moving[c].detach() if c in moving else old[c])
    assert objective.seen.tolist() == [True] * 4


def test_a_boundary_by_hand():
    """m on the boundary of its class costs the whole distance and still has a gradient; farther than it costs nothing."""
    head = nn.Linear(2, 2)
    head.weight.data = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])  # boundary: x = 0
    head.bias.data.zero_()
    on = torch.tensor([[0.0, 7.0]], requires_grad=True)
    loss = boundary_margin(on, torch.tensor([0]), head, 5.0)
    assert loss.item() == pytest.approx(5.0)
    loss.backward()
    assert on.grad.tolist() == [[-1.0, 0.0]]
    for x, expected in ((2.0, 3.0), (5.0, 0.0), (9.0, 0.0), (-1.0, 6.0)):
        assert boundary_margin(torch.tensor([[x, 1.0]]), torch.tensor([0]), head, 5.0).item() == pytest.approx(expected)
    assert boundary_margin(torch.tensor([[2.0, 0.0]]), torch.tensor([1]), head, 5.0).item() == pytest.approx(7.0)


def test_proposition_4_1():
    """With the old centroid at the batch mean, the margin's gradient through momentum is 1 - momentum times the batch one."""
    draws = generator(4)
    weight = torch.randn(3, 5, dtype=torch.float64, generator=draws)
    images, labels = torch.rand(6, 5, 1, 1, dtype=torch.float64, generator=draws), torch.tensor([0, 1, 2, 2, 1, 0])
    gradients = {}
    for centroids in ("batch", "momentum"):
        net = Features(weight, torch.zeros(3, dtype=torch.float64))
        objective = Discriminative(
            3, 5, centroids=centroids, momentum=0.8, compact_weight=0, regulariser_weight=0, noise_weight=0, margin_weight=1
        ).double()
        objective.centroid_table.copy_(torch.stack([images.flatten(1)[labels == c].mean(0) for c in range(3)]))
        objective.seen.fill_(True)
        terms = objective(net, images, labels)
        margin = terms.total - nn.functional.cross_entropy(net(images), labels)
        assert terms.parts["margin"] > 0
        gradients[centroids] = torch.autograd.grad(margin, net.scale)[0].item()
    assert gradients["momentum"] == pytest.approx(0.2 * gradients["batch"], rel=1e-9)


def test_centroids_are_state_and_wait_in_evaluation(images):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, 5))
    objective, labels = Discriminative(), torch.tensor([0, 1, 1, 3, 3, 3])
    objective(net, images, labels)
    state = objective.state_dict()
    assert state["seen"].tolist() == [True, True, False, True, False]
    assert torch.allclose(state["centroid_table"][1], net[:3](images[1:3]).mean(0), atol=1e-6)
    again = Discriminative(5, 8)
    again.load_state_dict(state)
    before = state["centroid_table"].clone()
    again.eval()(net, images.flip(0), labels)
    assert torch.equal(again.centroid_table, before)


def test_limits(images):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, 5))
    labels = torch.arange(6) % 5
    off = Discriminative(compact_weight=0, margin_weight=0, regulariser_weight=0, noise_weight=0)(net, images, labels)
    assert off.total.item() == pytest.approx(nn.functional.cross_entropy(net(images), labels).item())
    assert "noisy" not in off.parts
    wide = Discriminative(radius=1e3, distance=0.0, noise_std=0.0)(net, images, labels)
    assert wide.parts["compact"] == 0
    assert wide.parts["noisy"] == 0
    still = Discriminative(noise_std=0.0)(net, images, labels)
    assert still.parts["noisy"].item() == pytest.approx(still.parts["compact"].item(), rel=1e-5)


def test_sizes_and_heads(images):
    labels = torch.arange(6) % 5
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, 5))
    with pytest.raises(SurefootError, match="feature_dim must be the model's 8, got 9"):
        Discriminative(5, 9)(net, images, labels)
    with pytest.raises(SurefootError, match="must end in one linear layer; no nn.Linear gives its output"):
        Discriminative()(nn.Sequential(nn.Flatten(), nn.Linear(768, 5), nn.ReLU()), images, labels)


def test_classes_with_the_same_weights_have_no_boundary():
    """A head of zeros: no term, and no gradient that would throw the weights away."""
    head, centroids = nn.Linear(3, 4), torch.randn(4, 3, requires_grad=True)
    nn.init.zeros_(head.weight)
    loss = boundary_margin(centroids, torch.arange(4), head, 5.0)
    loss.backward()
    assert loss.item() == 0
    assert float(head.weight.grad.abs().max()) == 0
    with torch.no_grad():
        head.weight[0, 0] = 1.0  # now class 0 has a boundary with each of the others
    assert boundary_margin(centroids, torch.arange(4), head, 5.0).item() > 0


def test_the_authors_variant_against_the_equations():
    """Weights 0.5 and 0.5, momentum 0.99, the regulariser on the centroids with momentum, a noisy copy of another picture."""
    draws = generator(0)
    weight, bias = torch.randn(4, 3, dtype=torch.float64, generator=draws), torch.randn(4, dtype=torch.float64, generator=draws)
    net = Features(weight, bias)
    images, second = (3 * torch.rand(7, 3, 1, 1, dtype=torch.float64, generator=draws) for _ in range(2))
    labels = torch.tensor([0, 3, 3, 0, 1, 3, 0])
    objective = Discriminative(4, 3, view=lambda x, generator=None: x + 0.3, variant="authors").double()
    old = torch.randn(4, 3, dtype=torch.float64, generator=draws)
    objective.centroid_table.copy_(old)
    objective.seen.fill_(True)
    objective.second = second
    terms = objective(net, images, labels)
    q, noisy = net.scale * images.flatten(1), net.scale * (second + 0.3).flatten(1)
    batch = {c: q[labels == c].mean(0) for c in (0, 1, 3)}
    moving = {c: 0.99 * old[c] + 0.01 * batch[c] for c in (0, 1, 3)}
    plain = plain_terms(q, noisy, labels, net.head.weight, net.head.bias, moving, batch, 0.5, 5.0)
    regulariser = sum(moving[c].norm() for c in moving) / 3
    cross_entropy = nn.functional.cross_entropy(net(images), labels)
    total = cross_entropy + 0.5 * plain["compact"] + 0.5 * plain["noisy"] + plain["margin"] + 1e-3 * regulariser
    assert terms.total.item() == pytest.approx(total.item(), rel=1e-10)
    ours, theirs = (torch.autograd.grad(value, list(net.parameters())) for value in (terms.total, total))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-8, atol=1e-10)


def test_a_variant_changes_what_is_left_at_the_texts_value():
    theirs = Discriminative(variant="authors")
    assert {name: getattr(theirs, name) for name in AUTHORS} == AUTHORS
    assert theirs.perturb.clip
    assert Discriminative(variant="authors", momentum=0.5).momentum == 0.5
    again = Discriminative(**theirs.options())
    assert again.options() == theirs.options()
    text = Discriminative()
    assert (text.momentum, text.compact_weight, text.clip, text.second_augmentation) == (0.9, 1.0, False, False)
