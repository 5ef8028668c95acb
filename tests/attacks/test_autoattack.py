"""AutoAttack: parity with its authors' code, never weaker than PGD, few classes, any size, seeded, stopped early, resumable."""

from dataclasses import replace

import pytest
import torch
from attack_nets import pictures, small_net
from torch import nn

import surefoot as sf
from surefoot.attacks import AutoAttack, autoattack, evaluate, pgd
from surefoot.attacks.norms import Ball
from surefoot.errors import SurefootError, UnknownName

QUICK = AutoAttack(iterations=10, queries=50)


@pytest.mark.parametrize(("norm", "eps"), [("linf", 0.015), ("l2", 0.15)])
def test_at_most_what_pgd_leaves(norm, eps, capfd):
    net, images = small_net(), pictures(16)
    labels = net(images).argmax(1)
    found = evaluate(net, images, labels, AutoAttack(eps, norm, iterations=40, queries=50))
    weaker = evaluate(net, images, labels, lambda m, x, y: pgd(m, x, y, eps, 20, norm=norm))
    assert 0 < found.robust_accuracy <= weaker.robust_accuracy < 1
    assert found.parts == ("apgd-ce", "apgd-t", "fab-t", "square")
    assert sum(found.share_of_parts.values()) == int(found.broken.sum())
    assert capfd.readouterr() == ("", "")


PARTS = {"standard": ["apgd-ce", "apgd-t", "fab-t", "square"], "fast": ["apgd-ce", "apgd-t"], "rand": ["apgd-ce", "apgd-dlr"]}
FEW_CLASSES = [(2, "standard"), (3, "standard"), (7, "fast"), (12, "standard"), (2, "rand"), (3, "rand")]
SOON = [(2, "standard"), (3, "rand")]  # in the other norms


@pytest.mark.parametrize(
    ("classes", "version", "norm"),
    [
        pytest.param(*each, norm, marks=() if norm == "linf" or each in SOON else pytest.mark.stress)
        for norm in ("linf", "l2", "l1")
        for each in FEW_CLASSES
    ],
)
def test_any_number_of_classes(classes, version, norm):
    attack = replace(QUICK, version=version, norm=norm, eps=0.01)
    assert list(attack.parts(classes, (8, 8))) == [part for part in PARTS[version] if norm != "l1" or part != "square"]
    net, images = small_net(classes), pictures(6)
    labels = net(images).argmax(1)
    found = attack(net, images, labels)
    size = Ball(norm, 1).sizes(found - images)
    assert size.max() <= 0.01 + 1e-6
    changed = size > 0
    assert ((net(found).argmax(1) != labels) == changed).all()


SIZES = [(1, 1, 1), (3, 2, 5), (1, 4, 4), (3, 5, 9), (2, 12, 6), (3, 7, 7), (1, 12, 12), (3, 18, 18), (3, 10, 20)]


@pytest.mark.parametrize(
    ("size", "norm"),
    [
        pytest.param(size, norm, marks=pytest.mark.stress if (number + (norm == "l2")) % 2 and number else ())
        for number, size in enumerate(SIZES)
        for norm in ("linf", "l2")
    ],
)
def test_any_size(size, norm):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(size[0] * size[1] * size[2], 4))
    images = torch.rand(5, *size)
    labels = net(images).argmax(1)
    found = replace(QUICK, norm=norm, eps=0.001)(net, images, labels)
    assert found.shape == images.shape
    assert found.min() >= 0
    assert found.max() <= 1


def test_seeded_and_the_callers_generator_is_left_alone():
    net, images = small_net(4), pictures(16)
    labels = net(images).argmax(1)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first, again = (autoattack(net, images, labels, 0.02, version="fast", seed=1) for _ in range(2))
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(first, again)


def test_budget_zero_returns_the_clean_images():
    net, images = small_net(), pictures(4)
    assert torch.equal(autoattack(net, images, net(images).argmax(1), 0), images)


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.images = small_net(), 0

    def forward(self, images):
        self.images += len(images)
        return self.net(images)


def test_an_attack_that_succeeds_at_once_stops():
    """With a large budget every image breaks in a few of APGD's 100 iterations, and the rest is not run."""
    net, images = Counted(), pictures(32)
    labels = net.net(images).argmax(1)
    found = evaluate(net, images, labels, AutoAttack(0.5))
    assert found.success_rate == 1
    assert found.share_of_parts["apgd-ce"] == 32
    assert net.images < 32 * 30


def test_survivors_get_the_whole_attack():
    net, images = Counted(), pictures(32)
    labels = net.net(images).argmax(1)
    found = evaluate(net, images, labels, AutoAttack(0.06, version="fast"))
    standing = int((~found.broken).sum())
    assert 0 < standing < 16
    assert net.images > standing * (100 + 4 * 100)  # cross-entropy, and four targets


def test_time_is_up_in_the_middle(caplog):
    net, images = small_net(), pictures(48)
    labels = net(images).argmax(1)
    found = evaluate(net, images, labels, AutoAttack(0.012, queries=10**6), seconds=1.0)
    assert found.finished is not None
    assert found.share_of_parts["apgd-ce"] > 0
    low, high = found.bounds
    assert low == 0
    assert high == found.robust_accuracy
    assert "Stopped after 1 s: of 48 images that were right" in caplog.text


def test_resumed(tmp_path):
    net, images = small_net(4), pictures(10)
    labels = net(images).argmax(1)
    attack, options = replace(QUICK, eps=0.01, version="fast"), {"batch_size": 4}
    whole = evaluate(net, images, labels, attack, **options)
    first = evaluate(net, images, labels, attack, **options, folder=tmp_path)
    kept = sorted(tmp_path.iterdir())
    kept[-1].unlink()  # as if stopped before the last batch
    again = evaluate(net, images, labels, attack, **options, folder=tmp_path)
    for found in (first, again):
        assert torch.equal(found.attacked.logits, whole.attacked.logits)
        assert found.queries == whole.queries  # also of what was read
    assert sorted(tmp_path.iterdir()) == kept


def test_a_randomised_model_is_told(caplog):
    class Noisy(nn.Module):
        randomised = True

        def __init__(self):
            super().__init__()
            self.net = small_net()

        def forward(self, images):
            return self.net(images + 0.01 * torch.randn_like(images))

    net, images = Noisy(), pictures(4)
    labels = net.net(images).argmax(1)
    replace(QUICK, version="rand")(net, images, labels)
    assert caplog.messages == []
    QUICK(net, images, labels)
    remedy = "use eot=20 or AutoAttack's version='rand'"
    assert caplog.messages == [f"Noisy draws anew at every call, and this attack sees one draw at a time: {remedy}."]


def test_bad_options():
    with pytest.raises(UnknownName, match="Unknown version 'standart'. Did you mean 'standard'?"):
        AutoAttack(version="standart")
    with pytest.raises(SurefootError, match="queries must be at least 1, got 0"):
        AutoAttack(queries=0)


def test_as_a_plain_function_it_takes_a_seed():
    net, images = small_net(), pictures(8)
    labels = net(images).argmax(1)
    attack = replace(QUICK, eps=0.03)
    found = [attack(net, images, labels, seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


# Parity with the authors' code, in the package pyautoattack, on a net that withstands something.


@pytest.fixture(scope="module")
def robust():
    """A small net trained against PGD on the embedded digits at 8 x 8, and 100 test images."""
    data = sf.load_data("digits", seed=0)
    train, test = (next(iter(split.batches(len(split)))) for split in (data.train, data.test))
    small, few = (nn.functional.adaptive_avg_pool2d(part.images.mean(1, keepdim=True), 8) for part in (train, test))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 16, 3, 1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64, 10))
    objective, optimiser = sf.objectives.AdversarialTraining(eps=0.1, steps=4), torch.optim.Adam(net.parameters(), 4e-3)
    order = torch.Generator().manual_seed(1)
    for _ in range(8):
        for rows in torch.randperm(len(train), generator=order).split(64):
            optimiser.zero_grad()
            objective(net, small[rows], train.labels[rows], generator=order).total.backward()
            optimiser.step()
    return net.eval(), few[:100], test.labels[:100]


@pytest.mark.parametrize("targets", [3, pytest.param(9, marks=pytest.mark.stress)])
@pytest.mark.parametrize(("norm", "eps"), [("linf", 0.1), ("l2", 0.8)])
def test_parity_image_by_image(robust, norm, eps, targets, monkeypatch):
    """With all nine targets of the published attack in the stress suite."""
    package = pytest.importorskip("pyautoattack.autoattack")
    net, images, labels = robust
    net.requires_grad_(False)
    theirs = package.AutoAttack(net, eps=eps, norm={"linf": "Linf", "l2": "L2"}[norm], seed=0)
    theirs.square.n_queries = 50
    theirs.apgd_targeted.n_target_classes = theirs.fab.n_target_classes = targets
    found, _ = theirs.run_standard_evaluation(images.clone(), labels.clone())
    standing = net(found).argmax(1) == labels
    monkeypatch.setattr("surefoot.attacks.auto_attack.TARGETS", targets)
    ours = evaluate(net, images, labels, AutoAttack(eps, norm, queries=50))
    left = ours.attacked.correct & ours.clean.correct
    assert 5 < int(standing.sum()) < 95
    assert int((left & ~standing).sum()) <= 1  # what only they broke
    assert int((left != standing).sum()) <= 2
