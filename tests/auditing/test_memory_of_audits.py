"""Memory is bounded by the chunk, not by the data: pictures made on the fly, a tiny net, a thousand classes."""

import json
import subprocess
import sys

import pytest

from peak_memory import PEAK

CODE = (
    PEAK
    + """
import json, sys
import numpy as np, torch
from PIL import Image
import surefoot as sf
from surefoot.auditing.depths import DEPTHS
from surefoot.data.dataset import Dataset
from surefoot.data.streaming import Pictures, StreamedSplit

count, depth, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]

class Made:
    def read(self, index):
        draws = np.random.default_rng(index)
        small = Image.fromarray(draws.integers(0, 256, (14, 14, 3), np.uint8))
        return small.resize((224, 224), Image.BILINEAR)
    def __len__(self):
        return count

def split(many):
    return StreamedSplit(Pictures(Made(), None, (224, 224)), torch.arange(many) % 1000, torch.arange(many), 0)

def dataset(many):
    few = split(64)
    return Dataset(few, few, few, split(many), tuple(map(str, range(1000))), (224, 224))

layers = torch.nn.AvgPool2d(16), torch.nn.Flatten(), torch.nn.Linear(588, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1000)
model = sf.adapt(torch.nn.Sequential(*layers), 0.5, 0.25, 224)
chosen = DEPTHS[depth]
if depth == "full":
    fewer = {"corruptions": {"severities": (3,)}, "noise": {"draws": 1}, "noise_uniform": {"draws": 1}}
    fewer |= {"attacks": {"names": ("fgsm", "pgd-weak")}, "autoattack": None, "certificates": None, "layers": None}
    chosen = chosen.having(**fewer, fisher=None)
sf.audit(model, dataset(64), batch_size=64, progress=False)
before = peak()
sf.audit(model, dataset(count), depth=chosen, batch_size=64, output=folder, progress=False)
print(json.dumps({"grown": peak() - before}))
"""
)


def grown(count, depth, folder):
    """By how many GiB an audit makes a process grow that has made a small one before."""
    command = [sys.executable, "-W", "ignore", "-c", CODE, str(count), depth, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])["grown"]
    print(f"{count} images, {depth}: {found:.2f} GiB")
    return found


@pytest.mark.stress
def test_fifty_thousand_large_pictures(tmp_path):
    assert grown(50_000, "quick", tmp_path) < 1.5


@pytest.mark.stress
def test_a_full_audit_does_not_grow_with_its_pictures(tmp_path):
    """1,500 more pictures are 0.9 GiB as floats."""
    few, many = grown(500, "full", tmp_path / "few"), grown(2_000, "full", tmp_path / "many")
    assert many < 1.5
    assert many - few < 0.3
