import math

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.data.augmentation import Augmentation
from surefoot.errors import SurefootError, UnknownName


def weights(model):
    return [value.clone() for value in model.state_dict().values()]


def fit_small(digits, seed=0, **options):
    torch.manual_seed(99)  # must not matter
    net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
    for p in net.parameters():
        nn.init.normal_(p, std=0.02, generator=torch.Generator().manual_seed(0))
    model = sf.adapt(net, 0.5, 0.5, 32)
    return sf.fit(model, sf.objectives.CrossEntropy(), digits, seed=seed, progress=False, **{"epochs": 2, **options})


def test_it_learns(run):
    assert run.history[-1]["validation_accuracy"] > 0.4  # chance is 0.1; the number of threads changes the path
    assert run.history[-1]["loss"] < run.history[0]["loss"]
    assert [epoch["epoch"] for epoch in run.history] == [1, 2, 3, 4, 5, 6]
    assert run.history[0]["cross_entropy"] == run.history[0]["loss"]


def test_the_seed_decides_all_even_dropout(digits):
    first = weights(fit_small(digits).model)
    torch.rand(7)
    again, other = weights(fit_small(digits).model), weights(fit_small(digits, seed=1).model)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_the_callers_generator_is_given_back(digits):
    fit_small(digits)
    a = torch.random.get_rng_state()
    fit_small(digits, seed=5)
    assert a.equal(torch.random.get_rng_state())


def test_against_a_plain_loop(digits):
    """SGD with Nesterov momentum and the cosine schedule, written out."""
    options = {"epochs": 3, "batch_size": 100, "learning_rate": 0.05, "warmup_epochs": 1, "precision": "float32"}
    run = fit_small(digits, augmentation=Augmentation(), **options)
    from surefoot.seeds import derive, generator

    net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
    for p in net.parameters():
        nn.init.normal_(p, std=0.02, generator=torch.Generator().manual_seed(0))
    velocity = [torch.zeros_like(p) for p in net.parameters()]
    train, count = digits.train, 0
    steps = len(train) // 100
    for epoch in range(3):
        order = torch.randperm(len(train), generator=generator(0, epoch, "order"))
        for number in range(steps):
            chosen = order[100 * number : 100 * number + 100]
            x = (train.images[chosen].float() / 255 - 0.5) / 0.5
            torch.manual_seed(derive(0, epoch, number, 0, "model"))
            loss = nn.functional.cross_entropy(net(x), train.labels[chosen])
            gradients = torch.autograd.grad(loss, list(net.parameters()))
            rise = 1 / steps + count * (1 - 1 / steps) / steps
            fall = 0.5 * (1 + math.cos(math.pi * (count - steps) / (2 * steps)))
            rate = 0.05 * (rise if count < steps else fall)
            with torch.no_grad():
                for p, g, v in zip(net.parameters(), gradients, velocity, strict=True):
                    g = g + 5e-4 * p
                    v.mul_(0.9).add_(g)
                    p.sub_(rate * (g + 0.9 * v))
            count += 1
    for ours, theirs in zip(run.model.module.parameters(), net.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_the_augmentation_is_used_and_recorded(digits):
    plain, own = fit_small(digits, augmentation=Augmentation()), fit_small(digits)
    assert own.recipe.augmentation == digits.augmentation.options()
    assert plain.recipe.augmentation["crop_padding"] == 0
    assert not torch.equal(plain.model.head.weight, own.model.head.weight)
    assert torch.equal(own.model.head.weight, fit_small(digits, augmentation=digits.augmentation).model.head.weight)


def test_validation_uses_the_predictor(digits):
    """What is judged each epoch is what will be used at test time."""

    class Constant(sf.objectives.CrossEntropy):
        def predictor(self, model):
            net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))
            nn.init.zeros_(net[1].weight)
            net[1].bias.data = torch.arange(10.0)
            return net

    model = sf.load_model("tiny-resnet", data=digits, seed=0)
    history = sf.fit(model, Constant(), digits, epochs=1, progress=False).history
    assert history[0]["validation_accuracy"] == pytest.approx(float((digits.validation.labels == 9).double().mean()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be 1 to 1,000,000, got 0"),
        ({"batch_size": 1}, "batch_size must be at least 2, got 1"),
        ({"learning_rate": -1.0}, "learning_rate must be positive and finite, got -1.0"),
        ({"momentum": 1.0}, "momentum must be at least 0 and below 1"),
        ({"momentum": 0.0}, "momentum must be positive for nesterov"),
        ({"weight_decay": -1.0}, "weight_decay must be at least 0"),
        ({"warmup_epochs": 3}, "warmup_epochs must be from 0 to epochs = 2, got 3"),
        ({"device": "cdua"}, "device must be one that this machine has, got 'cdua'"),
    ],
)
def test_bad_options(digits, options, message):
    with pytest.raises(SurefootError, match=message):
        fit_small(digits, **options)


def test_class_counts_must_agree(digits):
    model = sf.load_model("tiny-resnet", num_classes=7, seed=0)
    with pytest.raises(SurefootError, match="The model has 7 classes and the data 10"):
        sf.fit(model, sf.objectives.CrossEntropy(), digits, progress=False)


def test_a_method_by_name(digits):
    def trained(objective):
        net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))
        nn.init.zeros_(net[1].weight)
        nn.init.zeros_(net[1].bias)
        return sf.fit(sf.adapt(net, 0.5, 0.5, 32), objective, digits, epochs=1, progress=False)

    named, given = trained("focal"), trained(sf.objectives.Focal())
    assert named.recipe.objective == given.recipe.objective
    assert torch.equal(named.model.module[1].weight, given.model.module[1].weight)
    with pytest.raises(UnknownName, match="Did you mean 'focal'"):
        trained("foccal")


def test_without_validation_images_it_trains_to_the_last_epoch(digits, tmp_path):
    """The weights are those of the same run with validation, which decides nothing; what needs it is refused."""
    from dataclasses import replace

    from surefoot.data.subsets import taken

    without = replace(digits, validation=taken(digits.train, torch.empty(0, dtype=torch.long)))
    plain, bare = fit_small(digits), fit_small(without, output=tmp_path / "run")
    assert all(torch.equal(a, b) for a, b in zip(weights(plain.model), weights(bare.model), strict=True))
    assert "validation_accuracy" not in bare.history[-1]
    assert bare.history[-1]["loss"] == plain.history[-1]["loss"]
    with pytest.raises(SurefootError, match=r"patience needs validation images, and the data have none \(data.validation\)"):
        fit_small(without, patience=2)
    with pytest.raises(SurefootError, match="keep='best' needs validation images"):
        fit_small(without, keep="best")


class SeesBoth(sf.objectives.CrossEntropy):
    """Keeps what it is shown: the images, and the same augmented by other draws."""

    second_augmentation = True

    def __init__(self):
        super().__init__()
        self.pairs = []

    def forward(self, model, images, labels, *, generator=None):
        self.pairs.append((images.clone(), self.second.clone()))
        return super().forward(model, images, labels, generator=generator)


def test_a_second_augmentation_has_draws_of_its_own(digits):
    """The same pictures moved otherwise, part by part, and the same again with the same seed; nothing where nobody asks."""

    def pairs(**options):
        objective = SeesBoth()
        shifts = Augmentation(crop_padding=0.125)
        sf.fit(fit_small(digits, epochs=1).model, objective, digits, epochs=1, progress=False, augmentation=shifts, **options)
        return objective.pairs

    first, again = pairs(accumulation=2), pairs(accumulation=2)
    images, second = first[0]
    assert images.shape == second.shape
    assert not torch.equal(images, second)
    totals = images.sum((1, 2, 3)), second.sum((1, 2, 3))  # black margins move in: the content stays
    assert torch.corrcoef(torch.stack(totals))[0, 1] > 0.8
    assert all(torch.equal(a, b) for one, other in zip(first, again, strict=True) for a, b in zip(one, other, strict=True))
    plain = sf.objectives.CrossEntropy()
    sf.fit(fit_small(digits, epochs=1).model, plain, digits, epochs=1, progress=False)
    assert plain.second is None
