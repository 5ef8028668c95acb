"""Every example runs as a user would run it, in its own process, learns, and stays short."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import surefoot

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py"))
NEEDS = {"lightning_module.py": "lightning", "huggingface_trainer.py": "transformers"}
LAUNCH = {"distributed.py": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]}
NOISY = {"lightning_module.py"}  # Lightning 2.6 uses what torch 2.15 calls deprecated


def run_example(name: str, folder: Path) -> list[float]:
    """The accuracies that its processes print; it may write to the temporary folder but not where it is started."""
    start, temporary = folder / "start", folder / "temporary"
    start.mkdir()
    temporary.mkdir()
    settings = {
        "PYTHONPATH": str(Path(surefoot.__file__).parent.parent),
        "PYTHONWARNINGS": "ignore" if name in NOISY else "error",
        "OMP_NUM_THREADS": "1",  # two threads on busy cores wait for each other
        "TMPDIR": str(temporary),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled"),
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [sys.executable, *LAUNCH.get(name, []), str(FOLDER / name)]
    done = subprocess.run(command, cwd=start, env=os.environ | settings, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert not list(start.iterdir())
    return [float(found) for found in re.findall(r"test accuracy (\d\.\d{3})", done.stdout)]


def test_there_are_examples():
    assert len(EXAMPLES) >= 6
    assert NEEDS.keys() | LAUNCH.keys() | NOISY <= set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_short_and_listed(name):
    assert len((FOLDER / name).read_text().splitlines()) < 40
    assert f"]({name})" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_learns(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    accuracies = run_example(name, tmp_path)
    assert len(accuracies) == (2 if name in LAUNCH else 1)
    assert len(set(accuracies)) == 1  # every process ends with the same weights
    assert accuracies[0] > 0.85
    if name == "compiled.py":
        assert list((tmp_path / "compiled").rglob("*.so"))  # kernels were really built
