"""The worked examples of CONTRIBUTING.md, from outside the package: measured, written, gated, shown, listed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import surefoot as sf
from surefoot.auditing.table import read_table

ROOT = Path(__file__).parent.parent
MIRROR, SALT, GREY = "my_package.mirror:MirrorFlips", "my_package.salt:salt", "my_package.grey:one_grey_step"
PENALTY = "my_package.penalty:ConfidencePenalty"
GROUPS = {"measurements": MIRROR, "corruptions": SALT, "attacks": GREY, "objectives": PENALTY}


def example(word):
    """The snippet that has this word."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.S | re.M)
    (found,) = [block for block in blocks if word in block]
    return found


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The examples as modules of a package that can be imported."""
    folder = tmp_path / "outside" / "my_package"
    folder.mkdir(parents=True)
    for target in GROUPS.values():
        module, _, name = target.partition(":")
        (folder / f"{module.partition('.')[2]}.py").write_text(example(f" {name}("))
    monkeypatch.syspath_prepend(folder.parent)
    yield folder.parent
    for name in [name for name in sys.modules if name.split(".")[0] == "my_package"]:
        del sys.modules[name]


def test_examples_in_an_audit(package, surefoot, run, here, quicker):
    options = ["--measure", MIRROR, "--corruption", SALT, "--attack", GREY]
    done = surefoot("audit", run.folder, *options, "--output", "a", "--quiet")
    assert done.code == 0, done.err
    audit = json.loads((here / "a" / "audit.json").read_text())
    changed = audit["measurements"][MIRROR]["changed"]

    rows = read_table(here / "a", "mirrored")
    data = sf.load_data("digits").test
    seen = torch.isin(data.indices, torch.tensor(rows["index"].tolist()))
    images = data.images[seen].float() / 255
    with torch.no_grad():
        before, after = (run.predictor.eval()(each).argmax(1) for each in (images, images.flip(-1)))
    assert changed["value"] == pytest.approx((before != after).double().mean().item())
    assert changed["low"] <= changed["value"] <= changed["high"]
    assert changed["low"] < changed["high"]
    assert len(rows) == min(500, len(data))

    conditions = surefoot("table", "a", "--conditions").out.split()
    assert {"clean", "mirrored", GREY, *(f"{SALT}/{severity}" for severity in (1, 3, 5))} <= set(conditions)
    assert {cell["severity"] for cell in audit["corruptions"]["cells"] if cell["name"] == SALT} == {1, 3, 5}
    assert audit["attacks"][GREY]["eps"] == pytest.approx(4 / 255)

    bound = changed["value"] + 0.01
    for name in (f'measurements."{MIRROR}".changed', f"{MIRROR}.changed", "changed", f"{MIRROR}.changed.low"):
        assert surefoot("gate", "a", "--rule", f"{name} < {bound}").code == 0, name
    broken = surefoot("gate", "a", "--rule", f"{MIRROR}.changed < {changed['value'] - 0.001}")
    assert broken.code == 1
    assert f"measurements.{MIRROR}.changed" in broken.out
    assert surefoot("gate", "a", "--rule", f"attacks.{GREY}.success_rate <= 1").code == 0
    assert surefoot("gate", "a", "--rule", f"corruptions.{SALT}.3.accuracy >= 0").code == 0

    page = (here / "a" / "report.html").read_text()
    assert "Your measurements" in page
    assert f'<td>{MIRROR}</td><td class="text">changed</td><td>{changed["value"]:.4g}</td>' in page
    assert f"<td>{GREY}</td>" in page
    assert SALT in page


def test_an_objective_is_trained_by_name(package, surefoot, here):
    done = surefoot("train", "--objective", PENALTY, "--set", "objective.weight=0.2", "--epochs", 1, "--output", "r", "--quiet")
    assert done.code == 0, done.err
    assert "weight: 0.2" in (here / "r" / "recipe.yaml").read_text()


def test_entry_points_are_listed(package):
    """A distribution that is only a dist-info folder on the path."""
    info = package / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    lines = [f"[surefoot.{group}]\nmy-{group} = {target}\n" for group, target in GROUPS.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    paths = os.pathsep.join([str(package), str(Path(sf.__file__).parent.parent)])
    command = [sys.executable, "-m", "surefoot", "list", "--match", "my-*", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for group in GROUPS:
        (line,) = found[group]
        assert (line["name"], line["help"]) == (f"my-{group}", "from my-package")
