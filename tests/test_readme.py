"""Snippets in the documents run as they stand."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def blocks(document: str, language: str) -> Iterator[str]:
    """The fenced blocks of a language, in order."""
    yield from re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(), flags=re.S | re.M)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_python_snippets_run(document, here, quicker):
    snippets = list(blocks(document, "python"))
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, document, "exec"), {"__name__": "snippet"})


def test_commands_of_the_readme_run(surefoot, here, quicker):
    lines = [line for block in blocks("README.md", "sh") for line in block.splitlines()]
    assert lines
    for line in lines:
        found = surefoot(*shlex.split(line)[1:])
        assert found.code == 0, found.err


def test_every_command_is_in_the_readme():
    from surefoot.cli.main import COMMANDS

    text = (ROOT / "README.md").read_text()
    assert all(f"`surefoot {name}`" in text for name in COMMANDS)


def test_files_that_documents_link_to_exist():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_targets_of_the_makefile_that_documents_name_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for document in ROOT.glob("*.md"):
        assert set(re.findall(r"^make ([a-z-]+)", document.read_text(), flags=re.M)) <= targets
