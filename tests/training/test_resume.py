"""A run can be stopped at any moment; the same call goes on to the same weights, to the bit."""

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache, partial
from itertools import product
from shutil import copytree

import pytest
import torch
from torch import nn

import surefoot as sf
from forked import child_of_this
from surefoot.cli.main import run as run_command
from surefoot.data.subsets import choose
from surefoot.errors import SurefootError
from surefoot.files import read_tensors
from surefoot.training import loop
from surefoot.training.checkpoints import state_files


def build():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 10))
    return sf.adapt(net, 0.5, 0.5, 32)


OPTIONS = {
    "sgd": {},
    "adamw, average, best": {"optimiser": "adamw", "learning_rate": 0.01, "ema_decay": 0.9, "keep": "best", "clip_norm": 1.0},
    "step, parts": {"schedule": "step", "decay_epochs": [2, 3], "accumulation": 2, "decay_norms_and_biases": False},
    "average": {"ema_decay": 0.9},
}


def train(digits, output=None, **options):
    return sf.fit(build(), sf.objectives.CrossEntropy(), digits, epochs=4, output=output, progress=False, **options)


def same(a, b):
    return all(torch.equal(x, b.state_dict()[key]) for key, x in a.state_dict().items())


@pytest.fixture(scope="module")
def wholes(digits):
    """Runs without a break, each trained when it is first asked for."""
    return cache(lambda name: train(digits, **OPTIONS[name]))


@pytest.mark.parametrize("name", list(OPTIONS)[:3])
@pytest.mark.parametrize("epoch", [0, 1, 3])
def test_stopped_in_an_epoch(digits, wholes, tmp_path, monkeypatch, name, epoch):
    whole = wholes(name)
    real, calls = loop.validate, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == epoch + 1:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(loop, "validate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(digits, tmp_path / "r", **OPTIONS[name])
    assert len(state_files(tmp_path / "r")) == min(epoch, 1)
    assert not (tmp_path / "r" / "model.safetensors").exists()
    with pytest.raises(SurefootError, match="No weights at|is not finished"):
        sf.load_run(tmp_path / "r", model=build())
    again = train(digits, tmp_path / "r", **OPTIONS[name])
    assert len(calls) == epoch + 1 + 4 - epoch
    assert same(whole.model, again.model)
    assert [{**e, "images_per_second": 0} for e in again.history] == [{**e, "images_per_second": 0} for e in whole.history]
    assert sorted(p.name for p in (tmp_path / "r").iterdir()) == [
        *("best.safetensors", "history.jsonl", "model.safetensors", "recipe.yaml")
    ]


def test_a_finished_run_is_not_trained_again(digits, tmp_path, monkeypatch):
    first = train(digits, tmp_path / "r")
    monkeypatch.setattr(loop, "train", lambda *_: 1 / 0)
    again = train(digits, tmp_path / "r")
    assert same(first.model, again.model)
    assert again.history == first.history


def test_another_recipe_is_refused_unless_it_may_overwrite(digits, tmp_path):
    train(digits, tmp_path / "r")
    with pytest.raises(SurefootError, match=r"run \(its seed is 0, not 1\); choose another output or pass overwrite"):
        train(digits, tmp_path / "r", seed=1)
    assert same(train(digits, tmp_path / "r", seed=1, overwrite=True).model, train(digits, seed=1).model)


def test_best_and_last(digits, tmp_path, monkeypatch):
    """The best epoch by validation accuracy, here made the second, is kept beside the last."""
    accuracies = iter([0.2, 0.9, 0.5, 0.9] * 2)

    def judged(*_):
        return {"validation_accuracy": next(accuracies), "validation_ece": 0.0}

    monkeypatch.setattr(loop, "validate", judged)
    last = train(digits, tmp_path / "last")
    best = train(digits, tmp_path / "best", keep="best")
    kept = read_tensors("weights", tmp_path / "last" / "best.safetensors")
    assert torch.equal(kept["module.1.weight"], best.model.module[1].weight)
    assert not torch.equal(kept["module.1.weight"], last.model.module[1].weight)


def test_early_stopping(digits, monkeypatch):
    accuracies = iter([0.2, 0.9, 0.5, 0.9, 0.1])
    monkeypatch.setattr(loop, "validate", lambda *_: {"validation_accuracy": next(accuracies), "validation_ece": 0.0})
    assert len(train(digits, patience=2).history) == 4
    accuracies = iter([0.2, 0.9, 0.5, 0.9, 0.1])
    assert len(train(digits, patience=1).history) == 3


def test_a_broken_state_goes_back_to_the_one_before(digits, wholes, tmp_path, monkeypatch, caplog):
    whole = wholes("sgd")
    monkeypatch.setattr("surefoot.training.checkpoints.Path.unlink", lambda self, missing_ok=False: None)
    real, calls = loop.validate, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(loop, "validate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(digits, tmp_path / "r")
    monkeypatch.undo()
    newest, _ = state_files(tmp_path / "r")
    newest.write_bytes(newest.read_bytes()[:-100])
    assert same(whole.model, train(digits, tmp_path / "r").model)
    assert "is not whole" in caplog.text


class Breaks(sf.objectives.CrossEntropy):
    """Gives a loss that is not finite in the third epoch."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, model, images, labels, *, generator=None):
        terms = super().forward(model, images, labels)
        self.calls += 1
        broken = terms.total * (torch.nan if self.calls == 7 * 2 + 3 else 1.0)
        return sf.types.Terms(broken, {"cross_entropy": terms.parts["cross_entropy"], "extra": broken.detach()}, terms.logits)


def test_a_loss_that_is_not_finite(digits, tmp_path):
    with pytest.raises(SurefootError, match="The loss is not finite at epoch 3, step 3: extra. Lower learning_rate"):
        sf.fit(build(), Breaks(), digits, epochs=4, output=tmp_path / "r", progress=False)
    assert [path.name for path in state_files(tmp_path / "r")] == ["epoch-00002.safetensors"]


def test_weights_that_are_not_finite(digits, tmp_path):
    """After the last update of an epoch no loss can tell."""
    few = replace(digits, train=choose(digits.train, 64))
    with pytest.raises(SurefootError, match=r"On the validation images logits must be finite; .* Lower learning_rate"):
        sf.fit(build(), "cross-entropy", few, epochs=1, batch_size=64, learning_rate=1e38, schedule="constant",
               warmup_epochs=0, nesterov=False, output=tmp_path / "r", progress=False)  # fmt: skip


def command(output, epochs=4):
    return [
        sys.executable,
        "-m",
        "surefoot",
        "train",
        "--model",
        "tiny-resnet",
        "--epochs",
        str(epochs),
        "--fraction",
        "0.5",
        "--output",
        str(output),
        "--quiet",
    ]


def in_little_space(arguments):
    """The command where no file can grow beyond 100 kB once the second epoch is saved."""
    real = loop.save_state

    def full(folder, engine, state):
        if state.epoch == 2:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        real(folder, engine, state)

    loop.save_state = full
    run_command(arguments)


def test_no_space_left_while_saving(surefoot, tmp_path):
    """A limit on the size of files stands for a full disk: the old state survives, the error is one line, it goes on later."""
    arguments = command(tmp_path / "r", 3)[3:]
    with child_of_this(partial(in_little_space, arguments), tmp_path / "said") as child:
        code = child.wait()
    said = (tmp_path / "said").read_text()
    assert (code, said.count("\n")) == (2, 1), said
    assert "cannot be written" in said
    assert [path.name for path in (tmp_path / "r" / "state").iterdir()] == ["epoch-00001.safetensors"]
    assert surefoot(*arguments).code == 0
    assert (tmp_path / "r" / "model.safetensors").is_file()


def test_ctrl_c_is_one_line(tmp_path):
    with child_of_this(partial(run_command, command(tmp_path / "r", 50)[3:]), tmp_path / "said") as child:
        wait_for(lambda: list((tmp_path / "r" / "state").glob("epoch-*")))
        assert child.send(signal.SIGINT) == 130
    said = (tmp_path / "said").read_text()
    assert said == "surefoot: Interrupted. The same command goes on from the last finished epoch.\n"


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def kill_at(moment, output, epochs=4):
    """Start the command, kill it hard after `moment` seconds, and say whether it was still running."""
    process = subprocess.Popen(command(output, epochs), stderr=subprocess.DEVNULL)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def test_killed_hard(surefoot, tmp_path):
    assert surefoot(*command(tmp_path / "whole")[3:]).code == 0
    with child_of_this(partial(run_command, command(tmp_path / "r")[3:]), tmp_path / "said") as child:
        wait_for(lambda: list((tmp_path / "r" / "state").glob("epoch-00002*")))
        assert child.send(signal.SIGKILL) == -signal.SIGKILL
    assert surefoot(*command(tmp_path / "r")[3:]).code == 0
    whole, again = (tmp_path / name / "model.safetensors" for name in ("whole", "r"))
    assert whole.read_bytes() == again.read_bytes()


KILLS = list(product(range(2, 12, 3), ("before", "after")))


def train_and_kill_oneself(digits, output, kill):
    """Train, and die at one of the moments at which a file takes its place."""
    real, calls = os.replace, []

    def replace(a, b):
        calls.append(b)
        if (len(calls), "before") == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        real(a, b)
        if (len(calls), "after") == kill:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replace
    train(digits, output, **OPTIONS["average"])


@pytest.fixture(scope="module")
def killed(once, digits, wholes):
    """A folder for each kill."""
    wholes("average")  # so that all is imported

    def train_and_kill(folder):
        folder.mkdir()
        for call, moment in KILLS:
            name = f"{call}-{moment}"
            work = partial(train_and_kill_oneself, digits, folder / name, (call, moment))
            with child_of_this(work, folder / f"{name}.said") as child:
                assert child.wait() == -signal.SIGKILL, (folder / f"{name}.said").read_text()

    return once("killed-while-saving", train_and_kill)


@pytest.mark.parametrize(("call", "moment"), KILLS)
def test_killed_while_saving(tmp_path, digits, killed, wholes, moment, call):
    """The process kills itself hard just before or after a file (recipe, best, history, state, model) takes its place."""
    copytree(killed / f"{call}-{moment}", tmp_path / "r")
    again = train(digits, tmp_path / "r", **OPTIONS["average"])
    assert same(wholes("average").model, again.model)
    names = ["best.safetensors", "history.jsonl", "model.safetensors", "recipe.yaml"]
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == names


def test_a_real_net_with_adamw_and_average_goes_on_to_the_bit(digits, tmp_path, monkeypatch):
    def fit(output=None):
        model = sf.load_model("tiny-resnet", data=digits, seed=0)
        options = {"epochs": 2, "optimiser": "adamw", "learning_rate": 0.001, "ema_decay": 0.9, "progress": False}
        return sf.fit(model, sf.objectives.CrossEntropy(), digits, output=output, **options).model

    whole, real, calls = fit(), loop.validate, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(loop, "validate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "r")
    assert same(whole, fit(tmp_path / "r"))


def test_other_data_without_a_name_is_not_taken_for_the_same(digits, tmp_path):
    from dataclasses import replace

    unnamed = replace(digits, source={})
    first = train(unnamed, tmp_path / "r")
    assert same(train(unnamed, tmp_path / "r").model, first.model)
    fewer = replace(unnamed, validation=digits.calibration)
    with pytest.raises(SurefootError, match="holds another recipe's run \\(its fingerprint is '"):
        train(fewer, tmp_path / "r")


def test_a_newer_version_goes_on_with_an_older_ones_run(digits, tmp_path):
    first = train(digits, tmp_path / "r")
    recipe = (tmp_path / "r" / "recipe.yaml").read_text()
    (tmp_path / "r" / "recipe.yaml").write_text(recipe.replace(f"surefoot: {sf.__version__}", "surefoot: 0.0.1"))
    assert same(train(digits, tmp_path / "r").model, first.model)


@pytest.mark.stress
def test_killed_at_fifty_random_moments(tmp_path):
    """Kills at random moments, some of them during a save; each run then goes on to the same weights."""
    import random

    def train(output):
        began = time.monotonic()
        assert subprocess.run(command(output)).returncode == 0
        return time.monotonic() - began

    length, chance, kills, runs = train(tmp_path / "whole"), random.Random(0), 0, 0
    whole = (tmp_path / "whole" / "model.safetensors").read_bytes()
    while kills < 50:
        output, runs = tmp_path / f"r{runs}", runs + 1
        for _ in range(3):
            kills += kill_at(chance.uniform(0.4, 0.95) * length, output)
        rest = train(output)
        length = min(length, 2 * rest)  # a busy machine may have become a quiet one
        assert (output / "model.safetensors").read_bytes() == whole
