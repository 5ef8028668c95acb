"""Several processes give what one gives."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from functools import partial

import psutil
import pytest
import torch
from torch import nn

import surefoot as sf
from forked import child_of_this
from surefoot.errors import SurefootError
from surefoot.files import read_tensors
from surefoot.seeds import draw, generator, sharded
from surefoot.training import launcher, processes
from surefoot.views import GaussianNoise

SCRIPT = """
import atexit, os, sys, torch, surefoot as sf
from pathlib import Path
from torch import nn
class Noisy(sf.objectives.CrossEntropy):
    def forward(self, model, images, labels, *, generator=None):
        return super().forward(model, sf.views.GaussianNoise((0.0, 0.2))(images, generator), labels)
def train(kind, output):
    torch.manual_seed(0)
    norm = [nn.BatchNorm1d(24)] if kind == "norm" else []
    net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 24), *norm, nn.ReLU(), nn.Linear(24, 10))
    model = sf.adapt(net, 0.5, 0.5, 32)
    data = sf.load_data("digits")
    extra = {"accumulation": 2, "clip_norm": 1.0} if kind == "parts" else {}
    augmentation = type(data.augmentation)() if kind == "norm" else None
    objective = Noisy() if kind != "norm" else sf.objectives.CrossEntropy()
    sf.fit(model, objective, data, epochs=2, batch_size=64, learning_rate=0.05, output=output, progress=False,
           augmentation=augmentation, device="cpu", precision="float32", **extra)
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    def left():  # registered first, so it is the last to be called
        names = [task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm")]
        (folder / f"threads-{os.environ['RANK']}").write_text(" ".join(names))
    atexit.register(left)
    for kind in sys.argv[2:]:  # one after another in the same processes
        train(kind, folder / kind)
"""


def run_script(folder, *kinds):
    """Each kind of training by the same two processes."""
    folder.mkdir()
    script = folder / "script.py"
    script.write_text(SCRIPT)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launcher, str(script), str(folder), *kinds], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    for rank in range(2):  # a thread of the group that outlives the interpreter aborts the process now and then
        assert "gloo" not in (folder / f"threads-{rank}").read_text()


@pytest.fixture(scope="module")
def by_two(once):
    return once("by-two", lambda folder: run_script(folder, "plain", "parts", "norm"))


@pytest.mark.parametrize("kind", ["plain", "parts"])
def test_two_processes_equal_one(tmp_path, by_two, kind):
    """Noise, augmentation and order are drawn for the global batch; weights agree to 1e-5 without batch norm."""
    alone = {"__name__": "script"}
    exec(SCRIPT, alone)
    alone["train"](kind, tmp_path / kind)
    one, two = (read_tensors("weights", folder / kind / "model.safetensors") for folder in (tmp_path, by_two))
    for name in one:
        assert torch.allclose(one[name], two[name], atol=1e-5), name
    histories = [(folder / kind / "history.jsonl").read_text().splitlines() for folder in (tmp_path, by_two)]
    for a, b in zip(*([json.loads(line) for line in lines] for lines in histories), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
        assert a["validation_accuracy"] == pytest.approx(b["validation_accuracy"], abs=0.006)


def test_batch_norm_takes_its_statistics_over_each_half(by_two):
    """The same as one process that normalises each half by itself and averages gradients and running statistics."""
    two = read_tensors("weights", by_two / "norm" / "model.safetensors")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 10))
    data, norm = sf.load_data("digits"), net[2]
    steps, velocity = len(data.train) // 64, [torch.zeros_like(p) for p in net.parameters()]
    halves = [(torch.zeros(24), torch.ones(24)) for _ in range(2)]
    import math

    for epoch in range(2):
        batches = data.train.batches(64, shuffle=generator(0, epoch, "order"), drop_last=True)
        for number, batch in enumerate(batches):
            total = [torch.zeros_like(p) for p in net.parameters()]
            for side in range(2):
                norm.running_mean, norm.running_var = (value.clone() for value in halves[side])
                part = slice(32 * side, 32 * side + 32)
                loss = nn.functional.cross_entropy(net((batch.images[part] - 0.5) / 0.5), batch.labels[part])
                for mean, gradient in zip(total, torch.autograd.grad(loss, list(net.parameters())), strict=True):
                    mean += gradient / 2
                halves[side] = (norm.running_mean.clone(), norm.running_var.clone())
            done = epoch * steps + number
            rise = 1 / steps + done * (1 - 1 / steps) / steps
            share = rise if done < steps else 0.5 * (1 + math.cos(math.pi * (done - steps) / steps))
            with torch.no_grad():
                for p, g, v in zip(net.parameters(), total, velocity, strict=True):
                    g = g + 5e-4 * p
                    v.mul_(0.9).add_(g)
                    p.sub_(0.05 * share * (g + 0.9 * v))
        means = tuple((halves[0][k] + halves[1][k]) / 2 for k in range(2))
        halves = [means, means]
    for name, p in net.named_parameters():
        assert torch.allclose(two[f"module.{name}"], p, atol=1e-4), name
    assert torch.allclose(two["module.2.running_mean"], halves[0][0], atol=1e-4)
    assert torch.allclose(two["module.2.running_var"], halves[0][1], rtol=1e-3)


def command(output, *more):
    options = ["--epochs", "3", "--fraction", "0.3", "--batch-size", "64", "--processes", "2", "--output", str(output), *more]
    words = ["train", "--model", "tiny-resnet", "--objective", "discriminative", *options]
    return [sys.executable, "-m", "surefoot", *words]


@pytest.fixture(scope="module")
def whole(once):
    """A run that two processes trained without a break."""

    def train(folder):
        folder.mkdir()
        with (folder / "said").open("w") as said:
            assert subprocess.run(command(folder / "r", "--json"), stdout=said).returncode == 0

    return once("whole-by-two", train)


def test_the_command_starts_processes(whole):
    assert json.loads((whole / "said").read_text())["epoch"] == 3
    assert (whole / "r" / "model.safetensors").is_file()


def have_the_same_weights(one, other):
    for file in ("model.safetensors", "objective.safetensors"):
        a, b = (read_tensors("weights", folder / file) for folder in (one, other))
        for name in a:
            assert torch.allclose(a[name].float(), b[name].float(), atol=1e-6), name


def test_an_error_in_several_processes_is_one_line(tmp_path):
    done = subprocess.run(command(tmp_path / "r", "--data", "missing/folder"), capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "surefoot: No data folder at 'missing/folder'.\n"


def test_a_launcher_waits_for_the_process_that_speaks(tmp_path, monkeypatch):
    """The others know what is wrong earlier, and say nothing."""
    code = "import os, sys, time\nif os.environ['RANK'] == '0':\n    time.sleep(1)\n    open('said', 'w').close()\nsys.exit(2)"
    monkeypatch.chdir(tmp_path)
    start = subprocess.Popen
    monkeypatch.setattr(launcher.subprocess, "Popen", lambda command, env: start([sys.executable, "-S", "-c", code], env=env))
    assert launcher.launch(2, []) == 2
    assert (tmp_path / "said").exists()


def until_an_epoch_is_saved(process, output):
    until = time.monotonic() + 120
    while not list((output / "state").glob("epoch-*")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)


@pytest.mark.stress
def test_one_of_several_that_is_killed_is_a_failure(tmp_path, whole):
    """As when memory runs out: the others are ended, the code is not 0, a line says why, and the same command goes on."""
    process = subprocess.Popen(command(tmp_path / "r", "--quiet"), stderr=subprocess.PIPE, text=True)
    until_an_epoch_is_saved(process, tmp_path / "r")
    children = psutil.Process(process.pid).children()
    children[-1].kill()
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGKILL
    assert "One of 2 processes was ended by signal 9." in said
    assert not any(child.is_running() for child in children)
    assert not (tmp_path / "r" / "model.safetensors").exists()
    assert subprocess.run(command(tmp_path / "r", "--quiet")).returncode == 0
    have_the_same_weights(whole / "r", tmp_path / "r")


def test_a_stream_is_refused_in_several_processes(digits, monkeypatch):
    from dataclasses import replace

    from surefoot.data.preprocessing import Preprocessing
    from surefoot.data.timm_sets import IterableSplit

    class Two:
        num_processes = 2

    @contextmanager
    def two(*_):
        yield Two()

    monkeypatch.setattr(processes, "accelerated", two)
    stream = IterableSplit(
        "wds/x", None, "train", torch.ones(100, dtype=torch.bool), 0, Preprocessing((32, 32)), tuple(range(10))
    )
    model = sf.load_model("tiny-resnet", data=digits, seed=0)
    with pytest.raises(SurefootError, match="is read by one process"):
        sf.fit(model, sf.objectives.CrossEntropy(), replace(digits, train=stream), progress=False)


@pytest.mark.stress
def test_accelerate_that_lost_its_processes_is_refused(tmp_path):
    """`accelerate launch --cpu --num_processes 2` starts one process."""
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1"]
    arguments = ["--module", "surefoot", "train", "--epochs", "1", "--output", str(tmp_path / "r")]
    real = [sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", *launcher[3:], *arguments]
    done = subprocess.run(real, capture_output=True, text=True)
    assert done.returncode != 0
    assert "accelerate launch was asked for 2 processes and started one; use --processes 2 or torchrun" in done.stderr
    assert not (tmp_path / "r").exists()


def train_with_macs(output):
    torch.manual_seed(0)
    model = sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(3072, 24), nn.ReLU(), nn.Linear(24, 10)), 0.5, 0.5, 32)
    options = {"epochs": 2, "batch_size": 64, "learning_rate": 0.05, "device": "cpu", "precision": "float32"}
    sf.fit(model, sf.objectives.MaCS(), sf.load_data("digits"), output=output, progress=False, **options)


def launched_by_accelerate(output):
    from accelerate import debug_launcher
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)  # as in a process that has trained nothing
    warnings.simplefilter("error", FutureWarning)
    debug_launcher(train_with_macs, (output,), num_processes=2)


def test_accelerates_own_launcher(tmp_path):
    """The form that starts two processes on a CPU; MaCS draws its noise for the global batch."""
    train_with_macs(tmp_path / "one")
    with child_of_this(partial(launched_by_accelerate, tmp_path / "two"), tmp_path / "said") as child:
        assert child.wait() == 0, (tmp_path / "said").read_text()
    one, two = (read_tensors("weights", tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name in one:
        assert torch.allclose(one[name], two[name], atol=1e-5), name


@pytest.mark.stress
def test_two_processes_killed_go_on_to_the_same_weights(tmp_path, whole):
    """kill -9 of both; the same command goes on from the last finished epoch."""
    process = subprocess.Popen(command(tmp_path / "killed"), start_new_session=True)
    until_an_epoch_is_saved(process, tmp_path / "killed")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    assert subprocess.run(command(tmp_path / "killed", "--quiet")).returncode == 0
    have_the_same_weights(whole / "r", tmp_path / "killed")


def test_shares_and_draws():
    like = torch.zeros(1)
    whole = draw(torch.randn, (8, 3), like, generator(1))
    for rank in range(2):
        with sharded(rank, 2):
            assert torch.equal(draw(torch.randn, (4, 3), like, generator(1)), whole[4 * rank : 4 * rank + 4])
    images, view = torch.rand(8, 3, 4, 4), GaussianNoise((0.0, 0.3))
    together = view(images, generator(2))
    for rank in range(2):
        with sharded(rank, 2):
            assert torch.equal(view(images[4 * rank : 4 * rank + 4], generator(2)), together[4 * rank : 4 * rank + 4])
    assert processes.share_of(8, 1, 2).tolist() == [4, 5, 6, 7]
    assert processes.share_of(8, 1, 2, 2).tolist() == [2, 3, 6, 7]


def test_batches_must_divide(digits, monkeypatch):
    model = sf.load_model("tiny-resnet", data=digits, seed=0)
    with pytest.raises(SurefootError, match="batch_size must be a multiple of processes x accumulation = 3, got 128"):
        sf.fit(model, sf.objectives.CrossEntropy(), digits, accumulation=3, progress=False)


@pytest.mark.stress
def test_twenty_clean_exits(tmp_path):
    for number in range(20):
        run_script(tmp_path / str(number), "plain")  # asserts exit code 0


def until_it_has_children(process, _):
    until = time.monotonic() + 120
    while len(psutil.Process(process.pid).children()) < 2 and time.monotonic() < until:
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGKILL, until_it_has_children),
        *(
            pytest.param(each, until_an_epoch_is_saved, marks=pytest.mark.stress)
            for each in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
        ),
    ],
)
def test_processes_end_with_their_launcher(tmp_path, number, moment):
    """Whatever ends it, and though the signal reaches it alone; what it can say it says in a line."""
    process = subprocess.Popen(command(tmp_path / "r", "--epochs", "50"), stderr=subprocess.PIPE, text=True)
    moment(process, tmp_path / "r")
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    process.send_signal(number)
    _, left = psutil.wait_procs(children, timeout=30)
    assert left == []
    said = process.communicate(timeout=30)[1]
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 128 + number)
    if number != signal.SIGKILL:
        assert "goes on from the last finished epoch." in said.splitlines()[-1]
