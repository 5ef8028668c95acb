"""Shared fixtures: the embedded digits, a small trained run, the command line in this process, a real browser."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

import surefoot as sf
from surefoot.auditing import depths
from surefoot.cli.main import run as run_command
from surefoot.data.dataset import Dataset
from surefoot.training.runs import Run


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: the garbage collector need not look at it again and again."""
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # modules in C count what is left at the end


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Whatever a test draws without a generator of its own is the same in every run, alone or beside others."""
    torch.default_generator.manual_seed(0)  # not `torch.manual_seed`, which writes down the stack for devices to come


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """What this process writes need not survive a power cut: no waiting for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def digits() -> Dataset:
    return sf.load_data("digits")


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """A folder that the first of the suite's processes makes and all of them read: `once("name", make)`."""
    base = tmp_path_factory.getbasetemp()
    base = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once"
    base.mkdir(exist_ok=True)

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = base / name, base / f"{name}.done"
        with FileLock(base / f"{name}.lock"):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of one that failed
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def run(digits: Dataset, once: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Six epochs of cross-entropy on digits, with its folder, which is this process's own."""

    def fit(folder: Path) -> Run:
        model = sf.load_model("tiny-resnet", data=digits, seed=0)
        return sf.fit(model, sf.objectives.CrossEntropy(), digits, epochs=6, seed=0, output=folder, progress=False)

    own = tmp_path_factory.mktemp("runs") / "ce"
    shutil.copytree(once("ce", fit), own)
    return fit(own)  # finds it finished


@pytest.fixture
def quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick audit that is quicker still: few images, three corruptions, one attack."""
    chosen = ("gaussian_noise", "gaussian_blur", "contrast")
    quick = depths.Depth(
        "quick",
        {
            "corruptions": {"names": chosen, "severities": (1, 3, 5), "max_images": 40},
            "attacks": {"names": ("fgsm",), "max_images": 30},
            **depths.geometry(20, 2),
        },
    )
    monkeypatch.setitem(depths.DEPTHS, "quick", quick)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def surefoot(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """The command line in this process: `surefoot("train", "--epochs", 1)`; without the signs of life of slow machines."""
    monkeypatch.setattr("surefoot.progress.EVERY", 1e6)

    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            run_command([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Outcome(int(stop.value.code or 0), out, err)

    return call


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; without one the test is skipped by name, and fails in CI."""
    names = (os.environ.get("SUREFOOT_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if name and (found := shutil.which(name))), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs a browser: make browser")
        pytest.skip("no browser: make browser")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def images() -> torch.Tensor:
    """Random pixels, 6 x 3 x 16 x 16."""
    return torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Packed CIFAR-10 and MNIST beside the repo, or in SUREFOOT_SHARED_DATA; without them a test is skipped by name."""
    folder = Path(os.environ.get("SUREFOOT_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (folder / "mnist.tar.gz").is_file():
        pytest.skip("no shared data sets beside the repo (SUREFOOT_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session")
def cifar10_test(shared_data: Path, once: Callable[..., Path]) -> Path:
    """The test pictures in folders of their classes; unpacked by a program, since there are many before them."""

    def unpack(folder: Path) -> None:
        folder.mkdir()
        subprocess.run(["tar", "-xzf", shared_data / "cifar10.tar.gz", "-C", folder, "test"], check=True)

    return once("cifar10-test", unpack) / "test"


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns, as rich is told of one."""
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "80", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, recwarn: Any) -> Iterator[Any]:
    """A head that computes nothing and two nodes of one processor each."""
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 * 2**20}
    notice = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000, "health_check_failure_threshold": 5}
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": notice, **small}
    made = Cluster(initialize_head=True, head_node_args=head)
    nodes = [made.add_node(num_cpus=1, **small) for _ in range(2)]
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    yield made, nodes
    ray.shutdown()
    made.shutdown()
