"""Snippets in the documents run as they stand."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot.files import read_tensors
from surefoot.models.builders import SmallResNet, TinyResNet
from surefoot.objectives.methods import OBJECTIVES

ROOT = Path(__file__).parent.parent
USE = r"surefoot ([a-z]+(?: (?:run|show|figure|list|status)\b)?)([^\n`|#]*)"  # a command, and what it is given


def blocks(document: str, language: str) -> Iterator[str]:
    """The fenced blocks of a language, in order."""
    yield from re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(), flags=re.S | re.M)


def run_snippets(document):
    snippets = list(blocks(document, "python"))
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, document, "exec"), {"__name__": "snippet"})


@pytest.mark.parametrize(
    "document", ["CONTRIBUTING.md", "docs/audit-your-model.md", "docs/calibration.md", "docs/strange-pictures.md"]
)
def test_snippets_of_other_documents_run(document, here, quicker):
    run_snippets(document)


def test_readme_runs_and_python_and_the_command_give_bit_identical_weights(surefoot, here, quicker, monkeypatch):
    """Every snippet and every command, with a narrower net; the one that trains and the first command give the same."""
    for name in ("widths", "stride"):
        monkeypatch.setattr(SmallResNet, name, getattr(TinyResNet, name))
    lines = [line for block in blocks("README.md", "sh") for line in block.splitlines()]
    assert lines
    for name in ("python", "shell"):
        (here / name).mkdir()
    monkeypatch.chdir(here / "python")
    run_snippets("README.md")
    monkeypatch.chdir(here / "shell")
    for line in lines:
        found = surefoot(*shlex.split(line)[1:])
        assert found.code == 0, found.err
    python, shell = (here / name / "runs" / "smooth" for name in ("python", "shell"))
    one, other = (read_tensors("weights", folder / "model.safetensors") for folder in (python, shell))
    assert all(torch.equal(one[key], other[key]) for key in one | other)
    assert (python / "recipe.yaml").read_text() == (shell / "recipe.yaml").read_text()


def test_every_command_is_in_the_documents():
    from surefoot.cli.main import COMMANDS

    text = (ROOT / "docs" / "commands.md").read_text()
    assert all(f"`surefoot {name}`" in text for name in COMMANDS)


def test_json_and_quiet_are_where_the_documents_say(surefoot):
    from surefoot.cli.main import COMMANDS

    text = " ".join((ROOT / "docs" / "commands.md").read_text().split())
    assert "`gate`, `table` and the tables of `study` have `--format` instead, and `corrupt` writes files alone" in text
    assert "`list` and `doctor` have no `--quiet`" in text
    shown = {name: surefoot(name, "--help").out for name in COMMANDS if name != "study"}
    assert [name for name in shown if "--json" not in shown[name]] == ["table", "gate", "corrupt"]
    assert [name for name in shown if "--quiet" not in shown[name]] == ["list", "doctor"]
    assert all("--format" in shown[name] for name in ("table", "gate"))
    assert all(flag in surefoot("study", "run", "--help").out for flag in ("--format", "--quiet"))


def test_imports_that_documents_name_work():
    found = [
        line
        for document in (ROOT / "docs").rglob("*.md")
        for line in re.findall(r"(?:^|`)(from surefoot[\w.]* import \w+)(?:`|$)", document.read_text(), flags=re.M)
    ]
    assert "from surefoot.storage import StoredPredictions" in found  # in a sentence
    for line in found:
        exec(line, {})


def test_names_of_classes_that_differ_from_those_of_the_command_line():
    said = re.findall(r"`([a-z-]+)` \(`(\w+)`\)", (ROOT / "docs" / "how-to-choose.md").read_text())
    other = {entry.name: entry.target.partition(":")[2] for entry in OBJECTIVES}
    assert dict(said) == {name: own for name, own in other.items() if own.lower() != name.replace("-", "")}


def test_the_gate_of_the_documents_audits_every_test_image(here):
    data = re.search(r"--data (\S+)", next(block for block in blocks("docs/gate.md", "yaml") if "--data" in block))[1]
    for name in ("cat", "dog"):
        folder = here / "data" / "test" / name
        folder.mkdir(parents=True)
        for number in range(10):
            Image.new("RGB", (16, 16), (20 * number, 0, 0)).save(folder / f"{number}.png")
    assert len(sf.load_data(data).test) == 20


def test_flags_that_documents_give_a_command_exist(surefoot):
    """Every `surefoot COMMAND --flag` in a block or a sentence of a document."""
    given = {}
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for command, rest in re.findall(USE, document.read_text()):
            given.setdefault(command, set()).update(re.findall(r"(--[a-z-]+)", rest))
    assert "--predictions" in given["audit"]
    for command, flags in given.items():
        shown = surefoot(*command.split(), "--help").out if flags else ""
        assert [flag for flag in sorted(flags) if flag not in shown] == [], command


def test_files_that_documents_link_to_exist():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_targets_of_the_makefile_that_documents_name_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for document in ROOT.glob("*.md"):
        assert set(re.findall(r"^make ([a-z-]+)", document.read_text(), flags=re.M)) <= targets
