"""Every example runs outside of this process, learns, and stays short."""

import importlib.util
import json
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


TOGETHER = """
import contextlib, io, json, runpy, sys, traceback, warnings
folder, output, noisy, names = sys.argv[1], sys.argv[2], sys.argv[3].split(), sys.argv[4:]
found = {}
for name in sorted(names, key=noisy.__contains__):  # what is noisy comes last
    said = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(said):
        if name in noisy:
            warnings.simplefilter("ignore")
        try:
            if name == "compiled.py":  # kernels are built in the stress suite
                print(f"test accuracy {runpy.run_path(folder + name)['main'](backend='aot_eager'):.3f}")
            else:
                runpy.run_path(folder + name, run_name="__main__")
        except BaseException:
            said.write(traceback.format_exc())
    found[name] = said.getvalue()
open(output, "w").write(json.dumps(found))
"""


def run_examples(folder: Path, *command: str, noisy: bool = False) -> str:
    """What it prints; it may write to the temporary folder but not where it is started."""
    start, temporary = folder / "start", folder / "temporary"
    start.mkdir(parents=True)
    temporary.mkdir()
    settings = {
        "PYTHONPATH": str(Path(surefoot.__file__).parent.parent),
        "PYTHONWARNINGS": "ignore" if noisy else "error",
        "OMP_NUM_THREADS": "1",  # two threads on busy cores wait for each other
        "TMPDIR": str(temporary),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled"),
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(
        [sys.executable, *command], cwd=start, env=os.environ | settings, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert not list(start.iterdir())
    return done.stdout


@pytest.fixture(scope="module")
def together(once) -> dict[str, str]:
    """What the examples that need no launcher print, one after another in one process."""
    missing = {name for name, package in NEEDS.items() if importlib.util.find_spec(package) is None}
    names = sorted(set(EXAMPLES) - set(LAUNCH) - missing)

    def run(folder: Path) -> None:
        run_examples(folder, "-c", TOGETHER, f"{FOLDER}{os.sep}", str(folder / "said.json"), " ".join(NOISY), *names)

    return json.loads((once("examples", run) / "said.json").read_text())


def accuracies_in(said: str) -> list[float]:
    return [float(found) for found in re.findall(r"test accuracy (\d\.\d{3})", said)]


def test_there_are_examples():
    assert len(EXAMPLES) >= 6
    assert NEEDS.keys() | LAUNCH.keys() | NOISY <= set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_short_and_listed(name):
    assert len((FOLDER / name).read_text().splitlines()) < 40
    assert f"]({name})" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_learns(name, tmp_path, together):
    if name in NEEDS and name not in together:
        pytest.skip(f"needs {NEEDS[name]}")
    said = run_examples(tmp_path, *LAUNCH[name], str(FOLDER / name)) if name in LAUNCH else together[name]
    accuracies = accuracies_in(said)
    assert len(accuracies) == (2 if name in LAUNCH else 1), said
    assert len(set(accuracies)) == 1  # every process ends with the same weights
    assert accuracies[0] > 0.85


@pytest.mark.stress
@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - set(LAUNCH)))
def test_example_learns_in_a_process_of_its_own(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    (accuracy,) = accuracies_in(run_examples(tmp_path, str(FOLDER / name), noisy=name in NOISY))
    assert accuracy > 0.85
    if name == "compiled.py":
        assert list((tmp_path / "compiled").rglob("*.so"))  # kernels were really built
