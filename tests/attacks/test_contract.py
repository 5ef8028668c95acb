"""What every attack promises: the ball, the range, the clean image at 0, the same for the same seed, and a model left alone."""

import hypothesis.strategies as st
import pytest
import torch
from attack_nets import linear_net, pictures, quick, small_net
from hypothesis import given, settings
from torch import nn

from surefoot.attacks import autoattack, fgsm, kl_pgd, noise, pgd
from surefoot.attacks.table import ATTACKS
from surefoot.errors import SurefootError
from surefoot.seeds import generator, global_seed


def sizes(found, images, norm):
    return (found - images).flatten(1).norm({"linf": torch.inf, "l2": 2, "l1": 1}[norm], dim=1)


class Counting(nn.Module):
    """Counts its passes in a buffer, even in evaluation mode, and can be told to fail."""

    def __init__(self, fail_at=None):
        super().__init__()
        self.net, self.fail_at, self.calls = small_net(3), fail_at, 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, images):
        self.seen += 1
        self.calls += 1
        if self.calls == self.fail_at:
            raise RuntimeError("out of memory")
        return self.net(images)


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 7), st.integers(1, 7)),
    norm=st.sampled_from(["linf", "l2"]),
    eps=st.sampled_from([0.0, 1e-3, 8 / 255, 0.5, 3.0]),
    name=st.sampled_from(["pgd", "pgd-early", "margin", "kl", "noise", "restarts"]),
    seed=st.integers(0, 99),
)
def test_in_the_ball_and_in_range(shape, norm, eps, name, seed):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Flatten(), nn.Linear(shape[1] * shape[2] * shape[3], 8), nn.Tanh(), nn.Linear(8, 3))
    images = torch.rand(shape, generator=generator(seed)).round(decimals=seed % 2)
    labels = torch.arange(shape[0]) % 3
    options = {"eps": eps, "norm": norm, "generator": generator(seed, "start")}
    attack = {
        "pgd": lambda: pgd(net, images, labels, steps=3, **options),
        "pgd-early": lambda: pgd(net, images, labels, steps=3, early_stop=True, **options),
        "margin": lambda: pgd(net, images, labels, steps=2, loss="margin", random_start=False, **options),
        "kl": lambda: kl_pgd(net, images, steps=2, **options),
        "noise": lambda: noise(net, images, labels, draws=3, **options),
        "restarts": lambda: pgd(net, images, labels, steps=2, restarts=3, **options),
    }[name]
    found = attack()
    assert found.shape == images.shape
    assert found.dtype == images.dtype
    assert sizes(found, images, norm).max() <= eps * (1 + 1e-5) + 1e-7
    assert found.min() >= 0
    assert found.max() <= 1
    if eps == 0:
        assert torch.equal(found, images)


@pytest.mark.parametrize("name", ATTACKS.names)
def test_every_preset(name):
    attack, net, images = quick(name), small_net(), pictures(5).transpose(2, 3)
    labels = net(images).argmax(1)
    kept = images.clone()
    with global_seed(1), torch.no_grad():
        first = attack(net, images, labels)
    with global_seed(1):
        again = attack(net, images, labels)
    assert torch.equal(first, again)
    assert torch.equal(images, kept)
    assert not first.requires_grad
    assert first.shape == images.shape
    norm, most = ("l1", 12 if name == "sparse-strong" else 3) if name.startswith("sparse") else ("linf", 8 / 255)
    assert sizes(first, images, norm).max() <= most * (1 + 1e-5) + 1e-6
    assert attack(net, images[:1], labels[:1]).shape == (1, 3, 8, 8)
    double = attack(small_net().double(), images.double(), labels)
    assert double.dtype == torch.float64
    with torch.inference_mode():
        assert attack(net, pictures(2), labels[:2]).shape == (2, 3, 8, 8)


@pytest.mark.parametrize("name", ATTACKS.names)
def test_the_model_is_left_as_it_was(name):
    net = Counting().train()
    net.net[1].eval()
    net.net[0].weight.requires_grad_(False)
    net.net[4].bias.grad = torch.ones(3)
    state = {key: value.clone() for key, value in net.state_dict().items()}
    modes = [layer.training for layer in net.modules()]
    images = pictures(4)
    labels = small_net(3)(images).argmax(1)
    attack = quick(name)
    attack(net, images, labels)
    with pytest.raises(SurefootError):
        attack(net, images, torch.tensor([0, 1, 2, 9]))
    net.fail_at = net.calls + 2
    if name != "fgsm":  # which makes one pass
        with pytest.raises(RuntimeError, match="out of memory"):
            attack(net, images, labels)
    assert [layer.training for layer in net.modules()] == modes
    assert [p.requires_grad for p in net.parameters()] == [False, True, True, True, True, True]
    assert net.net[4].weight.grad is None
    assert net.net[4].bias.grad.equal(torch.ones(3))
    assert all(net.state_dict()[key].equal(value) for key, value in state.items())


def test_buffers_are_restored():
    net, images = Counting(), pictures(3)
    for attack in (fgsm, pgd, noise):
        attack(net, images, torch.tensor([0, 1, 2]))
    assert net.calls == 1 + 7 + 20
    assert float(net.seen) == 0


@pytest.mark.parametrize("attack", [fgsm, pgd, autoattack])
def test_bad_input(attack):
    net, images, labels = linear_net(), torch.rand(2, 3, 4, 4), torch.tensor([0, 1])
    with pytest.raises(SurefootError, match="eps must be at least 0, got -1"):
        attack(net, images, labels, -1)
    with pytest.raises(SurefootError, match="eps must be at least 0, got nan"):
        attack(net, images, labels, float("nan"))
    with pytest.raises(SurefootError, match=r"labels must be in 0 to 1, got 0 to 7\."):
        attack(net, images, torch.tensor([0, 7]))
    with pytest.raises(SurefootError, match="labels must be one for each of 2 images"):
        attack(net, images, torch.tensor([0]))
    with pytest.raises(SurefootError, match=r"images must be in \[0, 1\]"):
        attack(net, images + 1, labels)
    if attack is not fgsm:
        with pytest.raises(SurefootError, match="Unknown norm 'linff'. Did you mean 'linf'?"):
            attack(net, images, labels, norm="linff")


class Blind(nn.Module):
    """Sees its input in one of several wrong ways."""

    def __init__(self, way):
        super().__init__()
        self.inner, self.way = linear_net(), way

    def forward(self, images):
        if self.way == "ignores":
            return self.inner(torch.ones_like(images))
        if self.way == "detaches":
            return self.inner(images.detach())
        if self.way == "multiplies by 0":
            return self.inner(0 * images)
        spoilt = images.clone()
        spoilt[1] = torch.sqrt(images[1] - images[1])  # an infinite slope times 0
        return self.inner(spoilt)


@pytest.mark.parametrize("attack", [fgsm, pgd])
@pytest.mark.parametrize("way", ["ignores", "detaches", "multiplies by 0"])
def test_a_model_that_does_not_react(attack, way):
    with pytest.raises(SurefootError, match="Blind does not react to its input"):
        attack(Blind(way), torch.rand(2, 3, 4, 4), torch.tensor([0, 1]))


@pytest.mark.parametrize("attack", [fgsm, pgd])
def test_a_gradient_that_is_not_a_number_names_its_image(attack):
    with pytest.raises(SurefootError, match="not finite for 1 of 3 images, the first at index 1"):
        attack(Blind("spoils"), torch.rand(3, 3, 4, 4), torch.tensor([0, 1, 0]))
