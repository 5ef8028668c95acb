"""What the views draw: for each image, in the stated range and with the stated law; simple stand-ins do the operations."""

import math

import pytest
import torch

from surefoot import views
from surefoot.errors import SurefootError
from surefoot.imageops.jpeg import jpeg
from surefoot.imageops.tone import adjust_contrast, posterize, solarize
from surefoot.seeds import draw, generator, sharded
from surefoot.views.combinations import on_some

COUNT = 4000


def flat(values, low, high):
    """Whether these look like draws from U(low, high)."""
    values = values.double()
    assert low <= values.min() <= low + 0.01 * (high - low)
    assert high - 0.01 * (high - low) <= values.max() <= high
    assert values.mean().item() == pytest.approx((low + high) / 2, abs=0.02 * (high - low))
    assert values.std().item() == pytest.approx((high - low) / math.sqrt(12), rel=0.04)


def recorded(monkeypatch, module):
    """What is asked of the operations of a module, which add 1 to every image instead."""
    calls = []

    def add(images, operation, level):
        calls.append((operation, level))
        return images + 1

    monkeypatch.setattr(f"surefoot.views.{module}.operate", add)
    return calls


class TestAugMixChains:
    @pytest.mark.parametrize("alpha", [1.0, 0.5])
    def test_chains_are_mixed_by_dirichlet_and_with_the_image_by_beta(self, monkeypatch, alpha):
        """Chain k of three paints channel k white on a black image: the channels are m w_k."""

        def paint(chains, operation, level):
            return torch.eye(3).repeat(len(chains) // 3, 1)[:, :, None, None]

        monkeypatch.setattr("surefoot.views.augmix.operate", paint)
        out = views.AugMixChains(width=3, depth=1, alpha=alpha)(torch.zeros(COUNT, 3, 1, 1), generator(0)).flatten(1)
        m = out.sum(1)
        assert m.mean().item() == pytest.approx(0.5, abs=0.02)
        assert m.var().item() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.06)
        w = out / m[:, None]
        assert w.mean(0).tolist() == pytest.approx([1 / 3] * 3, abs=0.02)
        assert w.var(0).tolist() == pytest.approx([2 / 9 / (3 * alpha + 1)] * 3, rel=0.08)
        assert abs(torch.corrcoef(torch.stack([m, w[:, 0]]))[0, 1].item()) < 0.05
        white = views.AugMixChains(width=3, depth=1, alpha=alpha)(torch.ones(COUNT, 3, 1, 1), generator(0)).flatten(1)
        assert torch.allclose(white, 1 - m[:, None] + out, atol=1e-5)  # 1 - m is left of the image

    def test_length_operation_level_and_direction(self, monkeypatch):
        calls = recorded(monkeypatch, "augmix")
        views.AugMixChains(severity=3, width=1)(torch.zeros(COUNT, 1, 1, 1), generator(0))
        sizes = [len(operation) / COUNT for operation, _ in calls]
        assert sizes == pytest.approx([1, 2 / 3, 1 / 3], abs=0.03)  # 1, 2 or 3 operations, equally often
        operation, level = (torch.cat(parts) for parts in zip(*calls, strict=True))
        assert (operation.bincount() / len(operation)).tolist() == pytest.approx([1 / 9] * 9, abs=0.015)
        flat(level.abs(), 0.1, 3)
        assert (level < 0).float().mean().item() == pytest.approx(0.5, abs=0.02)
        calls.clear()
        views.AugMixChains(depth=2, width=4)(torch.zeros(5, 1, 1, 1), generator(0))
        assert [len(operation) for operation, _ in calls] == [20, 20]

    def test_a_chain_works_on_its_own_result(self, monkeypatch):
        monkeypatch.setattr("surefoot.views.augmix.operate", lambda chains, operation, level: 2 * chains)
        image, m = torch.ones(COUNT, 1, 1, 1), 0.5
        out = views.AugMixChains(width=2, depth=3)(image, generator(0))
        assert out.mean().item() == pytest.approx(1 - m + m * 2**3, rel=0.03)


@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_mixed_tone(monkeypatch, beta):
    """One of four operations at one of ten levels, and w of the image is left."""
    calls = recorded(monkeypatch, "combinations")
    changed = views.MixedTone(beta)(torch.zeros(COUNT, 1, 1, 1), generator(0)).flatten()
    assert changed.mean().item() == pytest.approx(0.5, abs=0.02)
    assert changed.var().item() == pytest.approx(1 / (4 * (2 * beta + 1)), rel=0.06)
    ((operation, level),) = calls
    assert (operation.bincount() / COUNT).tolist() == pytest.approx([1 / 4] * 4, abs=0.02)
    assert (level.long().bincount() / COUNT).tolist() == pytest.approx([0] + [1 / 10] * 10, abs=0.015)
    assert torch.equal(level, level.round())


def test_rotations_translations_and_shears(monkeypatch):
    seen = []
    monkeypatch.setattr("surefoot.views.simple.warp", lambda images, matrices: seen.append(matrices) or images)
    images = torch.zeros(COUNT, 1, 2, 2, dtype=torch.float64)
    views.RotateTranslate()(images, generator(0))
    turn = seen[0][:, :2, :2]
    flat(torch.atan2(turn[:, 1, 0], turn[:, 0, 0]).rad2deg(), -5, 5)
    moved = -(turn.mT @ seen[0][:, :2, 2:]).squeeze(2)  # the image is turned first, then moved
    for side in range(2):
        flat(moved[:, side], -2, 2)
    assert abs(torch.corrcoef(moved.T)[0, 1].item()) < 0.05
    views.Shear(0.3)(images, generator(0))
    for row, column in ((0, 1), (1, 0)):
        flat(seen[1][:, row, column], -0.3, 0.3)


@pytest.mark.parametrize(
    ("view", "operation", "value"),
    [
        (views.JPEG, jpeg, 20.0),
        (views.Posterize, posterize, 2.0),
        (views.Solarize, solarize, 0.4),
        (views.Contrast, adjust_contrast, 0.3),
    ],
)
def test_one_value_for_all_images(view, operation, value):
    images = torch.rand(4, 3, 16, 16, generator=generator(0))
    assert torch.equal(view(value)(images), operation(images, torch.full((4,), value)))


@pytest.mark.parametrize(
    ("view", "name", "low", "high", "whole"),
    [
        (views.JPEG, "simple.jpeg", 10, 60, True),
        (views.Posterize, "simple.posterize", 2, 6, True),
        (views.Solarize, "simple.solarize", 0.2, 0.9, False),
        (views.Contrast, "simple.adjust_contrast", 0.2, 1.5, False),
    ],
)
def test_a_range_is_drawn_for_each_image(monkeypatch, view, name, low, high, whole):
    seen = []
    monkeypatch.setattr(f"surefoot.views.{name}", lambda images, values: seen.append(values) or images)
    view((low, high))(torch.zeros(COUNT, 1, 2, 2), generator(0))
    if whole:
        assert set(seen[0].tolist()) == set(range(low, high + 1))
        assert seen[0].mean().item() == pytest.approx((low + high) / 2, abs=0.02 * (high - low))
    else:
        flat(seen[0], low, high)


class TestSomeImages:
    """A view of some images draws what it would draw for all."""

    @pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
    def test_as_if_all_were_computed(self, share):
        images = torch.rand(12, 3, 8, 8, generator=generator(5))
        chosen = torch.rand(12, generator=generator(6)) < share
        view = views.Chain([views.AugMixChains(), views.OneOf([views.GaussianNoise(0.2), views.GaussianBlur()])])
        draws, again = generator(7), generator(7)
        found, whole = on_some(view, images, chosen, draws), view(images, again)
        assert torch.allclose(found, torch.where(chosen[:, None, None, None], whole, images), atol=1e-6)
        assert torch.equal(draws.get_state(), again.get_state())

    def test_in_two_processes(self):
        """Each process has its half of the draws, and of them those of its chosen images."""
        images, chosen = torch.zeros(6, 1, 2, 2), torch.tensor([False, False, False, True, False, True])
        noise = views.GaussianNoise(1.0)
        whole = on_some(noise, images, chosen, generator(8))
        halves = []
        for rank in range(2):
            with sharded(rank, 2):
                part = slice(3 * rank, 3 * rank + 3)
                halves.append(on_some(noise, images[part], chosen[part], generator(8)))
        assert torch.equal(torch.cat(halves), whole)

    def test_only_the_chosen_are_computed(self):
        seen = []

        def count(images, generator=None):
            seen.append(len(images))
            return images

        images = torch.zeros(300, 1, 2, 2)
        views.OneOf([count, count, count])(images, generator(0))
        assert sum(seen) == 300

    def test_what_a_view_of_some_must_keep(self):
        images, some = torch.rand(4, 1, 2, 2), torch.tensor([True, False, True, False])
        with pytest.raises(SurefootError, match=r"view's dtype must be torch.float32, got torch.float64"):
            on_some(lambda x, generator=None: x.double(), images, some, generator(0))
        with pytest.raises(SurefootError, match=r"shape must be 2 images first, got \(1,\)"):
            on_some(lambda x, draws: x + draw(torch.rand, (1,), x, draws), images, some, generator(0))
