"""Hostile files read by a process that may take little memory: a result or a line, and never a failed allocation."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from peak_memory import PEAK

CODE = """
import json, resource, struct, sys, zipfile
from pathlib import Path
import numpy as np, psutil, torch
from PIL import Image
import surefoot as sf
from surefoot.data.image_files import read_image
from surefoot.errors import SurefootError
from surefoot.training.recipes import Recipe
from test_hostile_files import BOMB, claims

folder, gib = Path(sys.argv[1]), float(sys.argv[2])
draws = np.random.default_rng(0)

def columns(name, count, rows):
    lines = [",".join(["label", *(f"logit_{k}" for k in range(count))])]
    lines += [",".join(["1", *map(str, draws.integers(0, 9, count))]) for _ in range(rows)]
    (folder / name).write_text("\\n".join(lines))
    return folder / name

def yaml_bomb():
    (folder / "r.yaml").write_text(BOMB + "objective: *a10\\n")
    return folder / "r.yaml"

def large_picture():
    Image.new("1", (20_000, 20_000)).save(folder / "large.png")
    return folder / "large.png"

def hollow(name):
    claims(folder / f"{name}.npz", name, (3_700_000_000, 1000))
    return folder / f"{name}.npz"

np.savez(folder / "labels.npz", images=np.zeros((2, 8, 8), np.uint8), labels=np.array([0, 10**9]))
CASES = {
    "logits that claim 27 TiB": (sf.Predictions.load, hollow("logits")),
    "images that claim 27 TiB": (sf.load_data, hollow("images")),
    "labels of a billion": (sf.load_data, folder / "labels.npz"),
    "20,000 columns": (sf.Predictions.load, columns("a.csv", 20_000, 100)),
    "100,000 columns": (sf.Predictions.load, columns("b.csv", 100_000, 10)),
    "YAML that grows": (Recipe.read, yaml_bomb()),
    "a picture of 400 megapixels": (read_image, large_picture()),
}
said = {}
limit = psutil.Process().memory_info().vms + int(gib * 2**30)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for name, (read, what) in CASES.items():
    try:
        read(what)
        said[name] = "read"
    except SurefootError as error:
        said[name] = str(error)
    except BaseException as error:
        said[name] = f"RAW {type(error).__name__}: {error}"
print(json.dumps(said))
"""


@pytest.mark.stress
def test_hostile_files_within_little_memory(tmp_path):
    """2 GiB beyond what the process has when its imports are done."""
    path = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
    command = [sys.executable, "-W", "ignore", "-c", f"import sys; sys.path[:0] = {path!r}\n{CODE}", str(tmp_path), "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert not [f"{name}: {line[:200]}" for name, line in said.items() if line.startswith("RAW") or "\n" in line]
    read = {name for name, line in said.items() if line == "read"}
    assert read == {"20,000 columns"}


NEARLY = """
import resource, sys
import numpy as np, psutil, torch
import surefoot as sf
from surefoot.errors import SurefootError

path = sys.argv[1]
np.savez(path, logits=np.zeros((225_000, 1000), np.float32), labels=np.zeros(225_000, np.int64))
limit = psutil.Process().memory_info().vms + 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    sf.Predictions.load(path)
except SurefootError as error:
    print(error)
"""


@pytest.mark.stress
def test_predictions_that_nearly_fit(tmp_path):
    """0.84 GiB of logits with 1 GiB free: there is no room for a second copy of them."""
    command = [sys.executable, "-W", "ignore", "-c", NEARLY, str(tmp_path / "a.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"The predictions of '.*a.npz' need 1.7 GiB of memory, and (0.9|1.0) are free.", done.stdout.strip())


VERY_MANY = (
    PEAK
    + """
import torch
import surefoot as sf

draws = torch.Generator().manual_seed(0)
labels = torch.randint(20_000, (500,), generator=draws)
logits = torch.randn(500, 20_000, generator=draws)
logits[range(500), labels] += 4
sf.audit_predictions(sf.Predictions.from_logits(logits, labels))
print(peak())
"""
)


@pytest.mark.stress
def test_audit_of_very_many_classes_stays_below_two_gibibytes():
    command = [sys.executable, "-W", "ignore", "-c", VERY_MANY]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2
