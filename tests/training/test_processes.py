"""Several processes give what one gives."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.files import read_tensors
from surefoot.seeds import draw, generator, sharded
from surefoot.training import processes
from surefoot.views import GaussianNoise

SCRIPT = """
import atexit, os, sys, torch, surefoot as sf
from pathlib import Path
from torch import nn
from surefoot.types import Terms
def left():  # registered first, so it is the last to be called
    names = [task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm")]
    Path(f"{output}-threads-{os.environ.get('RANK', 0)}").write_text(" ".join(names))
atexit.register(left)
class Noisy(sf.objectives.CrossEntropy):
    def forward(self, model, images, labels, *, generator=None):
        return super().forward(model, sf.views.GaussianNoise((0.0, 0.2))(images, generator), labels)
kind, output = sys.argv[1:3]
torch.manual_seed(0)
norm = [nn.BatchNorm1d(24)] if kind == "norm" else []
net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 24), *norm, nn.ReLU(), nn.Linear(24, 10))
model = sf.adapt(net, 0.5, 0.5, 32)
data = sf.load_data("digits")
extra = {"accumulation": 2, "clip_norm": 1.0} if kind == "parts" else {}
augmentation = type(data.augmentation)() if kind == "norm" else None
sf.fit(model, Noisy() if kind != "norm" else sf.objectives.CrossEntropy(), data, epochs=2, batch_size=64, learning_rate=0.05,
       output=output, progress=False, augmentation=augmentation, device="cpu", precision="float32", **extra)
if kind == "plain":  # a second run in the same processes
    sf.fit(model, sf.objectives.CrossEntropy(), data, epochs=1, batch_size=64, progress=False, device="cpu")
"""


def run_script(tmp_path, kind, count):
    script, output = tmp_path / "script.py", tmp_path / f"{kind}-{count}"
    script.write_text(SCRIPT)
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"] if count > 1 else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launcher, str(script), kind, str(output)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    for rank in range(count):  # a thread of the group that outlives the interpreter aborts the process now and then
        assert "gloo" not in (tmp_path / f"{kind}-{count}-threads-{rank}").read_text()
    return read_tensors("weights", output / "model.safetensors"), output


@pytest.mark.parametrize("kind", ["plain", "parts"])
def test_two_processes_equal_one(tmp_path, kind):
    """Noise, augmentation and order are drawn for the global batch; weights agree to 1e-5 without batch norm."""
    (one, first), (two, second) = (run_script(tmp_path, kind, count) for count in (1, 2))
    for name in one:
        assert torch.allclose(one[name], two[name], atol=1e-5), name
    lines = [[json.loads(x) for x in (f / "history.jsonl").read_text().splitlines()] for f in (first, second)]
    for a, b in zip(*lines, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
        assert a["validation_accuracy"] == pytest.approx(b["validation_accuracy"], abs=0.006)


def test_batch_norm_takes_its_statistics_over_each_half(tmp_path):
    """The same as one process that normalises each half by itself and averages gradients and running statistics."""
    two, _ = run_script(tmp_path, "norm", 2)
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


def test_the_command_starts_processes(tmp_path):
    command = [sys.executable, "-m", "surefoot", "train", "--epochs", "1", "--processes", "2", "--output", str(tmp_path / "r")]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epoch"] == 1
    assert (tmp_path / "r" / "model.safetensors").is_file()


def test_an_error_in_several_processes_is_one_line(tmp_path):
    command = [sys.executable, "-m", "surefoot", "train", "--epochs", "1", "--processes", "2", "--output", str(tmp_path / "r")]
    done = subprocess.run([*command, "--data", "missing/folder"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "surefoot: No data folder at 'missing/folder'.\n"


def test_one_of_several_that_is_killed_is_a_failure(tmp_path):
    """As when memory runs out: the others are ended, the code is not 0, and a line says why."""
    command = [
        sys.executable,
        "-m",
        "surefoot",
        "train",
        "--epochs",
        "500",
        "--processes",
        "2",
        "--output",
        str(tmp_path / "r"),
    ]
    process = subprocess.Popen([*command, "--quiet"], stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "r" / "state").glob("epoch-*")) and process.poll() is None:
        time.sleep(0.05)
    children = psutil.Process(process.pid).children()
    children[-1].kill()
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGKILL
    assert "One of 2 processes was ended by signal 9." in said
    assert not any(child.is_running() for child in children)


def test_a_stream_is_refused_in_several_processes(digits, monkeypatch):
    from dataclasses import replace

    from surefoot.data.preprocessing import Preprocessing
    from surefoot.data.timm_sets import IterableSplit
    from surefoot.training import loop

    class Two:
        num_processes = 2

    @contextmanager
    def two(*_):
        yield Two()

    monkeypatch.setattr(loop, "accelerated", two)
    stream = IterableSplit(
        "wds/x", None, "train", torch.ones(100, dtype=torch.bool), 0, Preprocessing((32, 32)), tuple(range(10))
    )
    model = sf.load_model("small-resnet", data=digits, seed=0)
    with pytest.raises(SurefootError, match="is read by one process"):
        sf.fit(model, sf.objectives.CrossEntropy(), replace(digits, train=stream), progress=False)


def test_accelerate_that_lost_its_processes_is_refused(tmp_path):
    """`accelerate launch --cpu --num_processes 2` starts one process."""
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1"]
    arguments = ["--module", "surefoot", "train", "--epochs", "1", "--output", str(tmp_path / "r")]
    real = [sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", *launcher[3:], *arguments]
    done = subprocess.run(real, capture_output=True, text=True)
    assert done.returncode != 0
    assert "accelerate launch was asked for 2 processes and started one; use --processes 2 or torchrun" in done.stderr
    assert not (tmp_path / "r").exists()


LAUNCHED = """
import sys, torch, surefoot as sf
from accelerate import debug_launcher
from torch import nn

def train():
    torch.manual_seed(0)
    model = sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(3072, 24), nn.ReLU(), nn.Linear(24, 10)), 0.5, 0.5, 32)
    data = sf.load_data("digits")
    sf.fit(model, sf.objectives.MaCS(), data, epochs=2, batch_size=64, learning_rate=0.05, device="cpu", output=sys.argv[2],
           precision="float32", progress=False)

if __name__ == "__main__":
    debug_launcher(train, num_processes=2) if sys.argv[1] == "2" else train()
"""


def test_accelerates_own_launcher(tmp_path):
    """The form that starts two processes on a CPU; MaCS draws its noise for the global batch."""
    script = tmp_path / "script.py"
    script.write_text(LAUNCHED)
    weights = []
    for count in (1, 2):
        command = [sys.executable, "-W", "error::FutureWarning", str(script), str(count), str(tmp_path / str(count))]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        assert done.returncode == 0, done.stderr
        weights.append(read_tensors("weights", tmp_path / str(count) / "model.safetensors"))
    for name in weights[0]:
        assert torch.allclose(weights[0][name], weights[1][name], atol=1e-5), name


def test_two_processes_killed_go_on_to_the_same_weights(tmp_path):
    """kill -9 of both; the same command goes on from the last finished epoch."""

    def command(output):
        options = (
            "--epochs",
            "3",
            "--fraction",
            "0.3",
            "--batch-size",
            "64",
            "--processes",
            "2",
            "--quiet",
            "--output",
            str(output),
        )
        return [sys.executable, "-m", "surefoot", "train", "--objective", "discriminative", *options]

    assert subprocess.run(command(tmp_path / "whole")).returncode == 0
    process = subprocess.Popen(command(tmp_path / "killed"), start_new_session=True)
    until = time.monotonic() + 120
    while not list((tmp_path / "killed" / "state").glob("epoch-*")) and time.monotonic() < until:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    assert subprocess.run(command(tmp_path / "killed")).returncode == 0
    for file in ("model.safetensors", "objective.safetensors"):
        whole, killed = (read_tensors("weights", tmp_path / name / file) for name in ("whole", "killed"))
        for name in whole:
            assert torch.allclose(whole[name].float(), killed[name].float(), atol=1e-6), name


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
    model = sf.load_model("small-resnet", data=digits, seed=0)
    with pytest.raises(SurefootError, match="batch_size must be a multiple of processes x accumulation = 3, got 128"):
        sf.fit(model, sf.objectives.CrossEntropy(), digits, accumulation=3, progress=False)


@pytest.mark.stress
def test_twenty_clean_exits(tmp_path):
    for number in range(20):
        (tmp_path / str(number)).mkdir()
        run_script(tmp_path / str(number), "plain", 2)  # asserts exit code 0
