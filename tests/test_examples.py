"""Every example runs outside of this process, learns, and stays short."""

import importlib.util
import os
import re
import runpy
import subprocess
import sys
import tempfile
import warnings
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from socket import socket

import pytest

import surefoot
from forked import child_of_this

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py"))
NEEDS = {"lightning_module.py": "lightning", "huggingface_trainer.py": "transformers"}
LAUNCH = {"distributed.py": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]}
NOISY = {"lightning_module.py"}  # Lightning 2.6 uses what torch 2.15 calls deprecated


def places(folder: Path) -> dict[str, str]:
    """A folder to start in, and the settings: an example may write to the temporary folder but not where it is started."""
    for name in ("start", "temporary"):
        (folder / name).mkdir(parents=True)
    own = {"TMPDIR": str(folder / "temporary"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled")}
    return own | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}


def run_example(folder: Path, *command: str, noisy: bool = False) -> str:
    """What an example prints in a process of its own."""
    settings = places(folder) | {"PYTHONPATH": str(Path(surefoot.__file__).parent.parent)}
    settings["PYTHONWARNINGS"] = "ignore" if noisy else "error"
    start = folder / "start"
    done = subprocess.run(
        [sys.executable, *command], cwd=start, env=os.environ | settings, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert not list(start.iterdir())
    return done.stdout


def work(folder: Path, settings: dict[str, str], names: list[str]) -> None:
    """Some examples, one after another; what is noisy comes last, and kernels are built in the stress suite."""
    os.chdir(folder / "start")
    os.environ.update(settings)
    tempfile.tempdir = None  # as in a process that has made no temporary file yet
    for name in sorted(names, key=NOISY.__contains__):
        warnings.simplefilter("ignore" if name in NOISY else "error")
        print(f"\n{name}", flush=True)
        if name == "compiled.py":
            print(f"test accuracy {runpy.run_path(str(FOLDER / name))['main'](backend='aot_eager'):.3f}")
        else:
            runpy.run_path(str(FOLDER / name), run_name="__main__")
    print("done")


@pytest.fixture(scope="module")
def together(once) -> dict[str, str]:
    """What the examples print that need no launcher, in a process that forks from this one, and one that needs two."""
    missing = {name for name, package in NEEDS.items() if importlib.util.find_spec(package) is None}
    names = sorted(set(EXAMPLES) - set(LAUNCH) - missing)

    def run(folder: Path) -> None:
        settings = places(folder)
        group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        works = [(settings, names), *((settings | group | {"RANK": str(rank)}, list(LAUNCH)) for rank in range(2))]
        with ExitStack() as stack:
            children = [
                stack.enter_context(child_of_this(partial(work, folder, *each), folder / f"said-{number}"))
                for number, each in enumerate(works)
            ]
            codes = [child.wait(600) for child in children]
        assert codes == [0, 0, 0], [(folder / f"said-{number}").read_text()[-3000:] for number in range(3)]
        assert not list((folder / "start").iterdir())

    folder = once("examples", run)
    said = "".join((folder / f"said-{number}").read_text() for number in range(3))
    parts = [(part.split("\n", 1)) for part in re.split(r"^(?=\w+\.py$)", said, flags=re.M)[1:]]
    return {name: "".join(text for own, text in parts if own == name) for name in EXAMPLES}


def free_port() -> int:
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def accuracies_in(said: str) -> list[float]:
    return [float(found) for found in re.findall(r"test accuracy (\d\.\d{3})", said)]


def test_there_are_examples():
    assert len(EXAMPLES) >= 6
    assert NEEDS.keys() | LAUNCH.keys() | NOISY <= set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_short_and_listed(name):
    assert len((FOLDER / name).read_text().splitlines()) < 40
    assert f"]({name})" in (FOLDER / "README.md").read_text()


def check(name: str, said: str) -> None:
    accuracies = accuracies_in(said)
    assert len(accuracies) == (2 if name in LAUNCH else 1), said
    assert len(set(accuracies)) == 1  # every process ends with the same weights
    assert accuracies[0] > 0.85


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_learns(name, together):
    if name in NEEDS and not together[name]:
        pytest.skip(f"needs {NEEDS[name]}")
    check(name, together[name])


@pytest.mark.stress
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_learns_in_a_process_of_its_own(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    check(name, run_example(tmp_path, *LAUNCH.get(name, ()), str(FOLDER / name), noisy=name in NOISY))
    if name == "compiled.py":
        assert list((tmp_path / "compiled").rglob("*.so"))  # kernels were really built
