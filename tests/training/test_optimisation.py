import math

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.data.augmentation import Augmentation
from surefoot.errors import SurefootError
from surefoot.training.optimisation import build_optimiser, build_schedule
from surefoot.training.precision import choose_precision

SGD = ("sgd", 0.1, 0.9, True, 1e-2, True)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("sgd", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=1e-2)),
        ("adam", lambda p: torch.optim.Adam(p, 0.1, weight_decay=1e-2)),
        ("adamw", lambda p: torch.optim.AdamW(p, 0.1, weight_decay=1e-2)),
    ],
)
def test_the_same_steps_as_torchs_own(name, theirs):
    a, b = net(), net()
    ours, other = build_optimiser(a, name, 0.1, 0.9, True, 1e-2, True), theirs(b.parameters())
    x = torch.rand(6, 4)
    for _ in range(4):
        for model, optimiser in ((a, ours), (b, other)):
            optimiser.zero_grad()
            model(x).square().sum().backward()
            optimiser.step()
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.allclose(p, q, atol=1e-6)


def test_norms_and_biases_can_be_left_out_of_weight_decay():
    groups = build_optimiser(net(), "sgd", 0.1, 0.9, True, 1e-2, False).param_groups
    decayed = {tuple(p.shape) for group in groups if group["weight_decay"] for p in group["params"]}
    assert decayed == {(3, 4), (2, 3)}
    assert all(group["weight_decay"] == 1e-2 for group in build_optimiser(net(), *SGD).param_groups)


def rates(schedule, epochs=6, steps=5, warmup=2, **options):
    optimiser = build_optimiser(net(), *SGD)
    course = build_schedule(optimiser, schedule, epochs, steps, warmup, **{"decay_epochs": 50, "decay_rate": 0.1, **options})
    found = []
    for done in range(epochs * steps):
        course.step_update(done)
        found.append(optimiser.param_groups[0]["lr"])
    return found


def test_cosine_with_warm_up():
    found = rates("cosine")
    assert found[:10] == pytest.approx([0.01 + k * 0.09 / 10 for k in range(10)])
    assert found[10] == pytest.approx(0.1)
    assert found[20] == pytest.approx(0.05)
    assert found[-1] == pytest.approx(0.05 * (1 + math.cos(math.pi * 19 / 20)))
    assert rates("cosine", warmup=0)[0] == pytest.approx(0.1)


def test_cosine_without_an_epoch_to_fall_in(caplog):
    assert rates("cosine", epochs=1, steps=10, warmup=1) == pytest.approx([0.01 + k * 0.09 / 10 for k in range(10)])
    assert rates("cosine", epochs=1, steps=1, warmup=0) == pytest.approx([0.1])
    assert not caplog.records


def test_steps_and_constant():
    found = rates("step", warmup=0, decay_epochs=[2, 4], decay_rate=0.2)
    assert found == pytest.approx([0.1] * 10 + [0.02] * 10 + [0.004] * 10)
    assert rates("step", warmup=0, decay_epochs=2, decay_rate=0.2) == pytest.approx(found)
    assert rates("constant", warmup=0) == pytest.approx([0.1] * 30)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimiser": "sgdd"}, r"Unknown optimiser 'sgdd'\. Did you mean 'sgd'"),
        ({"schedule": "cosin"}, r"Unknown schedule 'cosin'\. Did you mean 'cosine'"),
        ({"precision": "bf61"}, r"Unknown precision 'bf61'\. Did you mean 'bf16'"),
        ({"keep": "bset"}, r"Unknown keep 'bset'\. Did you mean 'best'"),
        ({"schedule": "step", "decay_epochs": [3, 2]}, r"decay_epochs must be rising numbers from 1, got \[3, 2\]"),
        ({"schedule": "step", "decay_rate": 2.0}, "decay_rate must be above 0 and at most 1"),
        ({"ema_decay": 1.0}, "ema_decay must be above 0 and below 1"),
        ({"accumulation": 0}, "accumulation must be at least 1"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"clip_norm": 0.0}, "clip_norm must be positive"),
    ],
)
def test_bad_options_write_nothing(digits, tmp_path, options, message):
    model = sf.load_model("tiny-resnet", data=digits, seed=0)
    with pytest.raises(SurefootError, match=message):
        sf.fit(model, sf.objectives.CrossEntropy(), digits, output=tmp_path / "r", progress=False, **options)
    assert not (tmp_path / "r").exists()


def fit_linear(digits, **options):
    torch.manual_seed(0)
    model = sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)), 0.5, 0.5, 32)
    base = {"epochs": 2, "batch_size": 64, "learning_rate": 0.01, "augmentation": Augmentation(), "progress": False}
    base["precision"] = "float32"  # sums are compared, and `auto` rounds them on some processors
    return sf.fit(model, sf.objectives.CrossEntropy(), digits, **{**base, **options})


def test_accumulation_changes_nothing_without_batch_norm(digits):
    one, parts = fit_linear(digits), fit_linear(digits, accumulation=4)
    assert torch.allclose(one.model.head.weight, parts.model.head.weight, atol=1e-5)
    assert parts.history[0]["loss"] == pytest.approx(one.history[0]["loss"], rel=1e-5)


def test_class_weights_add_up_over_parts(digits):
    def weight(accumulation):
        torch.manual_seed(0)
        model = sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)), 0.5, 0.5, 32)
        objective = sf.objectives.CrossEntropy([1.0, 5.0, *[1.0] * 8])
        options = {"epochs": 1, "batch_size": 64, "learning_rate": 0.01, "precision": "float32", "progress": False}
        return sf.fit(model, objective, digits, accumulation=accumulation, **options).model.head.weight

    assert torch.allclose(weight(1), weight(4), atol=1e-5)


def test_clipping_bounds_the_step(digits):
    start = torch.manual_seed(0) and nn.Linear(3072, 10).weight.detach()
    free, bound = (fit_linear(digits, optimiser="sgd", momentum=0.0, nesterov=False, clip_norm=c) for c in (None, 1e-3))
    moved = [(done.model.head.weight - start).norm().item() for done in (free, bound)]
    assert moved[1] < 2 * (len(digits.train) // 64) * 0.01 * 1e-3 + 1e-2 * 5e-4 * start.norm().item() * 30
    assert moved[0] > 10 * moved[1]


def test_the_moving_average_is_what_is_kept(digits):
    """timm's warm-up: decay_t = min(decay, 1 - t^(-2/3)) from the second update on."""
    seen = []

    class Watching(sf.objectives.CrossEntropy):
        def forward(self, model, images, labels, *, generator=None):
            seen.append(model.head.weight.detach().clone())
            return super().forward(model, images, labels)

    torch.manual_seed(0)
    model = sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)), 0.5, 0.5, 32)
    options = {"epochs": 2, "batch_size": 64, "learning_rate": 0.01, "augmentation": Augmentation(), "progress": False}
    done = sf.fit(model, Watching(), digits, ema_decay=0.9, precision="float32", **options)
    last = fit_linear(digits).model.head.weight
    average = seen[0]
    for step, weight in enumerate([*seen[1:], last], 1):
        t = max(0, step - 1)
        decay = 0.0 if t == 0 else max(min(1 - (1 + t) ** (-2 / 3), 0.9), 0.0)
        average = decay * average + (1 - decay) * weight
    assert torch.allclose(done.model.head.weight, average, atol=1e-5)
    assert not torch.allclose(done.model.head.weight, last, atol=1e-4)


@pytest.mark.parametrize("option", ["channels_last", pytest.param("compile", marks=pytest.mark.stress)])
def test_channels_last_and_compile_learn_the_same(digits, option):
    def conv(**options):
        torch.manual_seed(0)
        layers = [nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(900, 10)]
        model = sf.adapt(nn.Sequential(*layers), 0.5, 0.5, 32)
        options |= {"epochs": 1, "precision": "float32", "progress": False}
        return sf.fit(model, sf.objectives.CrossEntropy(), digits, **options).model.head.weight

    assert torch.allclose(conv(**{option: True}), conv(), atol=1e-4)


def test_mixed_precision_learns(digits):
    done = fit_linear(digits, precision="bf16", epochs=3)
    assert done.model.head.weight.dtype == torch.float32
    assert done.history[-1]["validation_accuracy"] > 0.7
    assert not torch.equal(done.model.head.weight, fit_linear(digits, epochs=3).model.head.weight)


def test_a_run_does_not_go_on_in_another_precision(digits, tmp_path, monkeypatch):
    """What `auto` took on this machine stands in the recipe; on a machine where it takes another, the run is refused."""
    monkeypatch.setattr("surefoot.training.precision.has_bf16_units", lambda: False)
    done = fit_linear(digits, precision="auto", epochs=1, output=tmp_path / "r")
    assert done.recipe.training["precision"] == "float32"
    assert "precision: float32" in (tmp_path / "r" / "recipe.yaml").read_text()
    assert fit_linear(digits, precision="auto", epochs=1, output=tmp_path / "r").history == done.history
    monkeypatch.setattr("surefoot.training.precision.has_bf16_units", lambda: True)
    with pytest.raises(SurefootError, match=r"its training.precision is 'float32', not 'bf16'"):
        fit_linear(digits, precision="auto", epochs=1, output=tmp_path / "r")


def test_precision_is_never_slower(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr("surefoot.training.precision.has_bf16_units", lambda: False)
    assert choose_precision("auto", cpu)[0] == "float32"
    assert "no units for bf16" in choose_precision("auto", cpu)[1]
    monkeypatch.setattr("surefoot.training.precision.has_bf16_units", lambda: True)
    assert choose_precision("auto", cpu)[0] == "bf16"
    assert choose_precision("fp16", cpu) == ("fp16", "as given")
    for major, expected in ((9, "bf16"), (7, "fp16"), (6, "float32")):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, major=major: (major, 0))
        assert choose_precision("auto", torch.device("cuda"))[0] == expected
    assert choose_precision("auto", torch.device("mps"))[0] == "float32"


def test_bad_trackers(digits, tmp_path):
    with pytest.raises(SurefootError, match="tracker 'tensorboard' needs an output folder"):
        fit_linear(digits, tracker="tensorboard")
    with pytest.raises(SurefootError, match="tensorbord"):
        fit_linear(digits, tracker="tensorbord", output=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_tensorboard(digits, tmp_path):
    pytest.importorskip("tensorboard")
    fit_linear(digits, output=tmp_path / "r", tracker="tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = next((tmp_path / "r").rglob("events.out.tfevents*"))
    found = EventAccumulator(str(events.parent))
    found.Reload()
    assert len(found.Scalars("validation_accuracy")) == 2


def test_steps_count_the_warm_up():
    """The decay is where it is asked for, whatever the warm-up before it."""
    found = rates("step", warmup=1, decay_epochs=[2, 4])
    assert found[:5] == pytest.approx([0.02 + k * 0.08 / 5 for k in range(5)])
    assert found[5:] == pytest.approx([0.1] * 5 + [0.01] * 10 + [0.001] * 10)
