"""Draws belong to the image: alone, in another batch, in another order, in batches of another size they are the same."""

from functools import partial

import pytest
import torch
from attack_nets import pictures, quick, small_net

from surefoot.attacks import AutoAttack, evaluate, fab, kl_pgd, masking_signs, noise, pgd, security_curve, square, transfer
from surefoot.attacks.norms import Ball
from surefoot.attacks.table import ATTACKS
from surefoot.errors import SurefootError
from surefoot.objectives import TRADES, AdversarialTraining
from surefoot.seeds import ImageDraws, generator

INDICES = torch.tensor([70, 3, 41, 8, 1999, 0, 12])
STILL = ("fgsm", "fab", "rays")  # they draw nothing, FAB not without restarts
DRAWING = {
    **{name: quick(name) for name in ATTACKS.names if name not in STILL and not name.startswith("autoattack")},
    "autoattack": AutoAttack(0.02, iterations=5, queries=20),
    "autoattack in L2": AutoAttack(0.2, "l2", iterations=5, queries=20),
    "autoattack in L1": AutoAttack(0.8, "l1", iterations=5),
    "square in L2": partial(square, eps=0.3, norm="l2", queries=100),
    "pgd in L2": partial(pgd, norm="l2", eps=0.5),
    "restarts": partial(pgd, eps=0.01, steps=2, restarts=4),
    "early stop": partial(pgd, eps=0.02, restarts=3, early_stop=True),
    "noise in L2": partial(noise, norm="l2", eps=0.5, draws=3),
    "kl": lambda model, images, labels, **draws: kl_pgd(model, images, steps=3, **draws),
}


@pytest.fixture(scope="module")
def case():
    """In double precision, so that the order of a sum decides no sign."""
    net, images = small_net().double(), pictures(len(INDICES)).double()
    return net, images, net(images).argmax(1)


@pytest.mark.parametrize("name", DRAWING)
def test_an_image_is_attacked_alike_in_every_batch(name, case):
    net, images, labels = case
    attack = DRAWING[name]
    whole = attack(net, images, labels, seed=3, indices=INDICES)
    order = torch.tensor([4, 0, 6, 2, 1, 5, 3])
    turned = attack(net, images[order], labels[order], seed=3, indices=INDICES[order])
    assert (turned - whole[order]).abs().max() < 1e-6
    parts = [
        attack(net, images[part], labels[part], seed=3, indices=INDICES[part])
        for part in torch.arange(len(images)).split((1, 2, 4))
    ]
    assert (torch.cat(parts) - whole).abs().max() < 1e-6
    assert torch.equal(attack(net, images, labels, seed=3, indices=INDICES), whole)
    other = attack(net, images, labels, seed=4, indices=INDICES)
    moved = attack(net, images, labels, seed=3, indices=INDICES + 1)
    for changed in (other, moved):
        assert (changed - whole).flatten(1).abs().amax(1).gt(1e-6).any()
    default = attack(net, images, labels, seed=3)
    assert torch.equal(default, attack(net, images, labels, seed=3, indices=torch.arange(len(images))))


def test_restarts_of_fab_belong_to_the_image(case):
    net, images, labels = case
    attack = partial(fab, eps=0.01, restarts=3, iterations=3, seed=3)
    whole = attack(net, images, labels, indices=INDICES)
    parts = [attack(net, images[[row]], labels[[row]], indices=INDICES[[row]]) for row in (0, 3, 6)]
    assert (torch.cat(parts) - whole[[0, 3, 6]]).abs().max() < 1e-6


@pytest.mark.parametrize("name", ATTACKS.names)
def test_a_measured_attack_does_not_depend_on_batches(name, case):
    """Through `evaluate`, which attacks only what is right and drops what is broken."""
    net, images, labels = case
    labels = labels.clone()
    labels[1] = (labels[1] + 1) % 5
    attack = quick(name)
    results = [evaluate(net, images, labels, attack, batch_size=size, seed=2, indices=INDICES) for size in (256, 4)]
    assert torch.allclose(results[1].attacked.logits, results[0].attacked.logits, atol=1e-5)
    order = torch.arange(len(images)).flip(0)
    turned = evaluate(net, images[order], labels[order], attack, seed=2, indices=INDICES[order])
    assert torch.allclose(turned.attacked.logits, results[0].attacked.logits[order], atol=1e-5)


def test_the_start_is_by_hand_the_draw_of_the_image(case):
    net, images, labels = case
    eps = 8 / 255
    start = pgd(net, images, labels, eps, 1, 0.0, seed=5, indices=INDICES)  # no step
    uniform = ImageDraws(5, "attacks/pgd", INDICES).uniform((3, 8, 8), "start").double()
    assert torch.allclose(start, (images + eps * (2 * uniform - 1)).clamp(0, 1))


def test_draws_of_a_ball_fill_it():
    """In L2 the share of the radius is U ** (1 / d), so its mean is d / (d + 1); in L-inf a change is uniform."""
    images = torch.full((4000, 1, 1, 2), 0.5)
    draws = ImageDraws(0, "test", torch.arange(4000))
    radii = (Ball("l2", 0.25).draw(images, draws) - images).flatten(1).norm(dim=1) / 0.25
    assert radii.max() <= 1 + 1e-5
    assert radii.mean().item() == pytest.approx(2 / 3, abs=0.015)
    change = (Ball("linf", 0.25).draw(images, draws) - images) / 0.25
    assert change.mean().item() == pytest.approx(0, abs=0.03)
    assert change.abs().mean().item() == pytest.approx(0.5, abs=0.02)


def test_budgets_of_a_curve_are_paired(case):
    """A larger ball starts in the same direction."""
    net, images, labels = case
    small, large = (pgd(net, images, labels, eps, 1, 0.0, indices=INDICES) - images for eps in (0.001, 0.002))
    inside = (images > 0.01) & (images < 0.99)
    assert torch.allclose(2 * small[inside], large[inside], atol=1e-9)


def test_curve_transfer_and_signs_take_indices(case):
    net, images, labels = case
    order = torch.arange(len(images)).flip(0)

    def curve(rows, size):
        found = security_curve(
            net, images[rows], labels[rows], "pgd", [0.01, 0.02], batch_size=size, indices=INDICES[rows], seed=1
        )
        return [(point.success_rate, pytest.approx(point.confidence, abs=1e-6)) for point in found]

    assert curve(order, 2) == curve(order.flip(0), 256)

    def moved(rows, size):
        one = {"one": net}
        found = transfer(one, one, images[rows], labels[rows], ["pgd-weak"], batch_size=size, indices=INDICES[rows])
        return found["one", "one", "pgd-weak"].attacked.logits

    assert torch.allclose(moved(order, 2)[order], moved(order.flip(0), 256), atol=1e-5)
    signs = [
        masking_signs(net, images[rows], labels[rows], queries=5, indices=INDICES[rows]) for rows in (order, order.flip(0))
    ]
    assert signs[0] == signs[1]


def test_an_attack_of_ones_own_is_told_seed_and_indices():
    images, seen = pictures(5), []
    net = small_net()
    labels = net(images).argmax(1)

    def own(model, images, labels, seed, indices):
        seen.append((seed, indices.tolist()))
        return images

    evaluate(net, images, labels, own, batch_size=2, seed=9, indices=torch.tensor([5, 4, 3, 2, 1]))
    assert seen == [(9, [5, 4]), (9, [3, 2]), (9, [1])]
    seen.clear()
    evaluate(net, images, labels, partial(own, seed=1, indices=torch.zeros(5)), seed=9)
    assert seen == [(1, [0.0] * 5)]  # whoever decided keeps it


def test_kept_images_of_other_indices_are_other_work(tmp_path):
    net, images = small_net(), pictures(4)
    labels = net(images).argmax(1)
    for indices in (None, torch.arange(4), torch.arange(4) + 1):
        evaluate(net, images, labels, "pgd", indices=indices, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_generator_draws_for_the_batch(case):
    net, images, labels = case
    one, two = (pgd(net, images, labels, generator=generator(1)) for _ in range(2))
    assert torch.equal(one, two)
    source = generator(1)
    assert not torch.equal(pgd(net, images, labels, generator=source), pgd(net, images, labels, generator=source))
    for options in ({"seed": 1}, {"indices": INDICES}):
        with pytest.raises(SurefootError, match="generator must be given without seed and indices"):
            pgd(net, images, labels, generator=source, **options)
    with pytest.raises(SurefootError, match="indices must be one for each of 7 images, got 2"):
        noise(net, images, labels, indices=torch.arange(2))


@pytest.mark.parametrize("objective", [AdversarialTraining(steps=1, step_size=0.001), TRADES(steps=1)])
def test_training_without_a_generator_draws_from_torchs_own(objective):
    """Every step anew, and as with a generator of the same seed."""
    net, images, labels = small_net(), pictures(4), torch.arange(4)
    torch.manual_seed(3)
    one, two = (objective(net, images, labels).total.item() for _ in range(2))
    assert one != two
    seeded = torch.Generator().manual_seed(3)
    assert [objective(net, images, labels, generator=seeded).total.item() for _ in range(2)] == [one, two]
