"""Rates by hand, ensembles, time budgets, resuming, and the signs of false confidence."""

import threading
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from attack_nets import linear_net, pictures, small_net
from torch import nn

from surefoot.attacks import AttackResult, evaluate, masking_signs, pgd, security_curve, transfer
from surefoot.attacks.cache import fingerprint
from surefoot.attacks.presets import find_attack
from surefoot.attacks.table import ATTACKS
from surefoot.calibration import scores
from surefoot.errors import SurefootError, UnknownName
from surefoot.objectives.noisy import NoisyEnsemble
from surefoot.views import GaussianNoise


class Pixel(nn.Module):
    """Class 1 where the first pixel is bright."""

    def forward(self, x):
        bright = 4 * (x[:, 0, 0, 0] - 0.5)
        return torch.stack([-bright, bright], 1)


def four_images():
    images = torch.zeros(4, 1, 2, 2)
    images[:3, 0, 0, 0] = 1  # predicted 1, 1, 1, 0
    return images, torch.tensor([1, 1, 0, 0])


def test_rates_by_hand():
    """An attack that turns the first pixel off breaks just the images that are right because of it."""
    images, labels = four_images()
    seen = []

    def attack(model, images, labels):
        seen.append(len(images))
        return torch.zeros_like(images)

    found = evaluate(Pixel(), images, labels, attack)
    assert seen == [3]
    assert found.broken.tolist() == [True, True, False, False]
    assert found.success_rate == pytest.approx(2 / 3)
    assert found.robust_accuracy == pytest.approx(1 / 4)
    assert found.bounds == (0.25, 0.25)
    sure = 1 / (1 + torch.tensor(-4.0).exp().item())  # every answer is given with this confidence
    assert found.confidence == pytest.approx(sure)
    assert found.calibration.ece == pytest.approx(sure - 0.25)
    assert found.calibration.signed_error == pytest.approx(sure - 0.25)
    assert scores(found.attacked).ece == pytest.approx(found.calibration.ece)


def test_batches_do_not_matter():
    net, images = linear_net(3), torch.rand(9, 3, 4, 4)
    labels = net(images).argmax(1)
    one, many = (evaluate(net, images, labels, "fgsm", batch_size=size) for size in (9, 2))
    assert one.broken.equal(many.broken)


def test_the_same_seed_gives_the_same_result_and_leaves_the_generator_alone():
    net, images = small_net(), pictures(32)
    labels = net(images).argmax(1)
    torch.manual_seed(5)
    first = torch.rand(1)
    torch.manual_seed(5)
    one, two = (evaluate(net, images, labels, "pgd", seed=1) for _ in range(2))
    assert torch.equal(torch.rand(1), first)
    assert torch.equal(one.attacked.logits, two.attacked.logits)
    assert not torch.equal(one.attacked.logits, evaluate(net, images, labels, "pgd", seed=2).attacked.logits)


class Ensemble:
    """Three parts that each break one class of images."""

    def __init__(self):
        self.seen = []

    def __call__(self, model, images, labels):
        raise AssertionError("the parts are called instead")

    def parts(self, classes, size):
        assert (classes, size) == (2, (2, 2))
        return {"nothing": self.part(-1), "ones": self.part(1), "zeros": self.part(0)}

    def part(self, label):
        def attack(model, images, labels):
            self.seen.append((label, len(images)))
            chosen = (labels == label).view(-1, 1, 1, 1)
            return torch.where(chosen, 1 - images, images)

        return attack


def test_an_ensemble_works_on_what_is_left():
    images, labels = four_images()
    ensemble = Ensemble()
    found = evaluate(Pixel(), images, labels, ensemble, batch_size=2)
    assert ensemble.seen == [(-1, 2), (-1, 1), (1, 2), (1, 1), (0, 1)]
    assert found.parts == ("nothing", "ones", "zeros")
    assert found.broken_by.tolist() == [1, 1, -1, 2]
    assert found.share_of_parts == {"nothing": 0, "ones": 2, "zeros": 1}


def test_nothing_is_run_when_nothing_is_left():
    images, labels = four_images()
    ensemble = Ensemble()
    found = evaluate(Pixel(), images[:2], labels[:2], ensemble)
    assert ensemble.seen == [(-1, 2), (1, 2)]
    assert found.success_rate == 1
    wrong = Ensemble()
    assert evaluate(Pixel(), images, torch.tensor([0, 0, 0, 1]), wrong).success_rate == 0
    assert wrong.seen == []


class Slow(Pixel):
    def forward(self, x):
        time.sleep(0.02)
        return super().forward(x)


def test_a_time_budget_says_what_is_proven(caplog):
    images, labels = four_images()
    images, labels = images.repeat(5, 1, 1, 1), labels.repeat(5)

    def attack(model, images, labels):
        for _ in range(10):
            model(images)
        return 1 - images

    found = evaluate(Slow(), images, labels, attack, batch_size=5, seconds=0.5)
    count = int(found.finished.sum()) - 5  # five were wrong before
    assert 0 < count < 15
    assert int(found.broken.sum()) == count
    assert found.bounds == (0.0, pytest.approx((15 - count) / 20))
    assert "Stopped after 0.5 s: of 15 images that were right" in caplog.text
    assert f"robust accuracy is 0.0 to {100 * (15 - count) / 20:.1f} %" in caplog.text
    whole = evaluate(Slow(), images, labels, attack, seconds=60)
    assert whole.finished is None
    assert whole.bounds == (0.0, 0.0)


def test_resuming_reads_what_was_done(tmp_path):
    images, labels = four_images()
    plain = evaluate(Pixel(), images, labels, Ensemble(), batch_size=2)
    calls = []

    class Dying(Ensemble):
        def __repr__(self):
            return "Dying()"

        def part(self, label):
            attack = super().part(label)

            def watched(model, images, labels):
                calls.append(label)
                if len(calls) == 4:
                    raise KeyboardInterrupt
                return attack(model, images, labels)

            return watched

    with pytest.raises(KeyboardInterrupt):
        evaluate(Pixel(), images, labels, Dying(), batch_size=2, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    again = evaluate(Pixel(), images, labels, Dying(), batch_size=2, folder=tmp_path)
    assert calls == [-1, -1, 1, 1, 1, 0]
    assert torch.equal(again.attacked.logits, plain.attacked.logits)
    assert again.broken_by.equal(plain.broken_by)
    evaluate(Pixel(), images, labels, Dying(), batch_size=2, folder=tmp_path)
    assert len(calls) == 6
    evaluate(Pixel(), images, 1 - labels, Dying(), batch_size=2, folder=tmp_path)  # other labels are other work
    assert len(calls) > 6


def test_presets_are_the_papers():
    weak, strong = (ATTACKS.load(f"pgd-{name}") for name in ("weak", "strong"))
    assert weak.keywords == {"eps": 0.4 / 255, "steps": 7, "step_size": 0.2 / 255}
    assert strong.keywords == {"eps": 8 / 255, "steps": 7, "step_size": 2 / 255}
    assert (ATTACKS.load("autoattack-weak").eps, ATTACKS.load("autoattack-strong").eps) == (1 / 255, 8 / 255)
    assert find_attack("pgd-weak", early_stop=True).keywords["early_stop"] is True
    assert find_attack(partial(pgd, early_stop=False), early_stop=True).keywords["early_stop"] is False
    assert find_attack("autoattack", early_stop=True, eps="1/255", version="fast").version == "fast"
    with pytest.raises(
        SurefootError, match="pgd-weak has its own budget and steps; options are for fgsm, pgd, autoattack, apgd, fab"
    ):
        find_attack("pgd-weak", early_stop=True, eps=0.1)
    with pytest.raises(UnknownName, match="Unknown option of pgd 'stepps'. Did you mean 'steps'?"):
        find_attack("pgd", early_stop=True, stepps=3)


def test_the_curve():
    net, images = small_net(), pictures(64)
    labels = net(images).argmax(1)
    curve = security_curve(net, images, labels, "pgd", [0, 0.02, 0.08], options={"steps": 10})
    assert [point.eps for point in curve] == [0, 0.02, 0.08]
    assert curve[0].accuracy == 1
    assert curve[0].success_rate == 0
    assert curve[0].accuracy > curve[1].accuracy > curve[2].accuracy
    assert curve[1].accuracy.low < curve[1].accuracy < curve[1].accuracy.high
    direct = evaluate(net, images, labels, partial(pgd, eps=0.08, steps=10))
    assert curve[2].accuracy == pytest.approx(direct.robust_accuracy)
    assert curve[2].confidence == direct.confidence
    assert curve[2].ece == pytest.approx(direct.calibration.ece)
    assert [point.eps for point in security_curve(net, images, labels, "pgd-weak")] == [None]


def test_transfer_counts_what_the_target_had_right(tmp_path):
    """The images of one surrogate flip the answer of a target that sees the same, and not of one that sees the opposite."""
    images, labels = four_images()

    class Blind(nn.Module):
        def forward(self, x):
            return torch.tensor([[0.0, 1.0]]).repeat(len(x), 1) + 0 * x.sum((1, 2, 3)).unsqueeze(1)

    def dim(model, images, labels):
        dim.made.append(type(model).__name__)  # not in the closure, which is part of what an attack is
        return 1 - images

    dim.made = []

    names = {"surrogates": {"pixel": Pixel()}, "targets": {"same": Pixel(), "blind": Blind()}}
    found = transfer(**names, images=images, labels=labels, attacks={"dim": dim}, folder=tmp_path)
    assert found.success_rates.shape == (1, 2, 1)
    assert found["pixel", "same", "dim"].success_rate == 1
    assert found["pixel", "same", "dim"].clean.correct.sum() == 3
    assert found["pixel", "blind", "dim"].success_rate == 0
    assert found.rows()[0] == {
        "surrogate": "pixel",
        "target": "same",
        "attack": "dim",
        "success_rate": 1.0,
        "accuracy": 0.0,
    }
    transfer(**names, images=images, labels=labels, attacks={"dim": dim}, folder=tmp_path)
    assert dim.made == ["Pixel"]
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(SurefootError, match="targets must be at least one, got 0"):
        transfer({"a": Pixel()}, {}, images, labels, ["fgsm"])


def test_transfer_between_nets():
    images = pictures(48)
    nets = {str(seed): small_net(seed=seed) for seed in range(2)}
    labels = nets["0"](images).argmax(1)
    found = transfer(nets, nets, images, labels, ["fgsm", "pgd-strong"])
    rates = found.success_rates
    assert rates.shape == (2, 2, 2)
    assert rates[0, 0, 1] > rates[1, 0, 1]  # its own images hurt most
    direct = evaluate(nets["0"], images, labels, "fgsm")
    assert rates[0, 0, 0] == pytest.approx(direct.success_rate)


class Staircase(nn.Module):
    """Rounds its pixels, which hides the gradient but not the errors."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, images):
        return self.net((images * 20).round() / 20 + 0 * images)


def test_signs_of_masked_gradients():
    net, images = small_net(), pictures(32)
    labels = net(images).argmax(1)
    options = {"eps": 0.1, "steps": 20, "queries": 60}
    assert masking_signs(net, images, labels, **options) == []
    lines = masking_signs(Staircase(net), images, Staircase(net)(images).argmax(1), **options)
    assert lines[0].startswith("The gradient is zero for 32 of 32 images")
    assert any(line.startswith("Random noise breaks") for line in lines)
    assert any(line.startswith("Square, which sees no gradient, breaks") for line in lines)
    nearly = masking_signs(linear_net(2, 8), images, linear_net(2, 8)(images).argmax(1), eps=0.02, queries=50)
    assert [line.split(":")[0] for line in nearly] == ["More steps do not help"]
    noisy = NoisyEnsemble(net, GaussianNoise(0.1), 2)
    assert masking_signs(noisy, images, labels, **options)[0].startswith("The model predicts differently from call to call")
    wrong = masking_signs(net, images, (labels + 1) % 5)
    assert wrong == ["No image is classified correctly, so there is nothing to attack."]


def test_bad_input():
    with pytest.raises(UnknownName, match=r"Unknown attack 'fsgm'\. Did you mean 'fgsm'"):
        evaluate(linear_net(), torch.rand(1, 3, 4, 4), torch.tensor([0]), "fsgm")
    with pytest.raises(SurefootError, match="images must be at least one"):
        evaluate(linear_net(), torch.rand(0, 3, 4, 4), torch.zeros(0, dtype=torch.long), "fgsm")
    with pytest.raises(SurefootError, match="seconds must be positive, got 0"):
        evaluate(linear_net(), torch.rand(1, 3, 4, 4), torch.tensor([0]), "fgsm", seconds=0)
    with pytest.raises(SurefootError, match="labels must be in 0 to 1, got 5 to 5"):
        evaluate(linear_net(), torch.rand(1, 3, 4, 4), torch.tensor([5]), "fgsm")


def test_a_result_from_predictions_alone():
    images, labels = four_images()
    found = evaluate(Pixel(), images, labels, "fgsm")
    assert AttackResult(found.clean, found.attacked).success_rate == found.success_rate


def test_fingerprints_tell_apart_what_differs():
    def shifted(by):
        return lambda model, images, labels: images + by

    dotted = torch.zeros(40, 40)
    dotted[20, 20] = 1  # where a text of the tensor has dots
    pairs = [
        (torch.nn.Sequential(torch.nn.ReLU()), torch.nn.Sequential(torch.nn.Sigmoid())),
        (NoisyEnsemble(Pixel(), GaussianNoise(0.1), 10), NoisyEnsemble(Pixel(), GaussianNoise(0.5), 10)),
        (NoisyEnsemble(Pixel(), GaussianNoise(0.1), 10), NoisyEnsemble(Pixel(), GaussianNoise(0.1), 2)),
        (shifted(0.1), shifted(0.2)),
        (lambda model, images, labels: images, lambda model, images, labels: 1 - images),
        (Shift(0.1).run, Shift(0.2).run),
        (Shift(0.1), Shift(0.2)),
        (Slotted(0.1), Slotted(0.2)),
        (Named(torch.zeros(40, 40)), Named(dotted)),
        (partial(pgd, start=torch.zeros(40, 40)), partial(pgd, start=dotted)),
        (partial(pgd, start=np.zeros(2000)), partial(pgd, start=np.arange(2000.0) == 900)),
        ({"a": [torch.zeros(40, 40)]}, {"a": [dotted]}),
        (with_attribute(scale=1), with_attribute(scale=2)),
        (with_attribute(sizes=(1, 2)), with_attribute(sizes=(1, 3))),
        (with_attribute(mean=torch.zeros(3)), with_attribute(mean=torch.ones(3))),
    ]
    for one, two in pairs:
        assert fingerprint(one) == fingerprint(one) != fingerprint(two)
    assert fingerprint(shifted(0.1)) == fingerprint(shifted(0.1))
    assert fingerprint(Shift(0.1).run) == fingerprint(Shift(0.1).run)
    assert fingerprint(Shift(0.1)) == fingerprint(Shift(0.1))
    own = Shift(0.1)
    own.again = own.run  # a circle
    assert fingerprint(own) != fingerprint(Shift(0.1))


def test_what_cannot_be_told_apart_is_not_kept(tmp_path):
    images, labels = four_images()
    with pytest.raises(SurefootError, match=r"A _thread\.lock cannot be told from another one"):
        evaluate(Pixel(), images, labels, Shift(threading.Lock()).run, folder=tmp_path)


def test_an_attack_of_ones_own_without_a_budget_is_one_point():
    images, labels = four_images()
    (point,) = security_curve(Pixel(), images, labels, f"{__name__}:flipped")
    assert point.eps is None
    before, after = (Pixel()(each).argmax(1) == labels for each in (images, 1 - images))
    assert float(point.accuracy) == float((before & after).double().mean())  # what was wrong stays wrong
    with pytest.raises(SurefootError, match="flipped has its own budget"):
        security_curve(Pixel(), images, labels, f"{__name__}:flipped", [0.1])


def flipped(model, images, labels):
    return 1 - images


class Shift:
    """An attack as an object."""

    def __init__(self, by):
        self.by = by

    def run(self, model, images, labels):
        return images + self.by


class Slotted:
    __slots__ = ("by",)

    def __init__(self, by):
        self.by = by


@dataclass
class Named:
    patch: torch.Tensor


def with_attribute(**values):
    net = nn.Sequential(nn.ReLU())
    for name, value in values.items():
        setattr(net[0], name, value)
    return net


class Rounded(nn.Module):
    """A defence that autograd cannot see through."""

    def __init__(self):
        super().__init__()
        self.inner = Pixel()

    def forward(self, x):
        with torch.no_grad():
            return self.inner(x)


def test_a_model_that_hides_its_gradient_is_the_clearest_case_of_masking():
    images, labels = four_images()
    lines = masking_signs(Rounded(), images, labels, eps=0.6, queries=20)
    assert lines[0].startswith("The gradient is zero for 3 of 3 images")
    with pytest.raises(SurefootError, match="Rounded does not react to its input, or hides it: no gradient reaches the images"):
        pgd(Rounded(), images, labels)


def test_budgets_are_checked_before_any_attack():
    images, labels = four_images()
    with pytest.raises(SurefootError, match="budgets must be at least 0, got -1"):
        security_curve(Forbidden(), images, labels, "pgd", [0.1, -1])
    with pytest.raises(SurefootError, match="pgd-weak has its own budget"):
        security_curve(Forbidden(), images, labels, "pgd-weak", [0.1])


class Forbidden(nn.Module):
    def forward(self, x):
        raise AssertionError
