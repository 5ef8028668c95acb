"""Completion by the script that typer writes, in a real bash."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import surefoot
from surefoot.cli.main import COMMANDS

SCRIPT = """
eval "$(_SUREFOOT_COMPLETE=source_bash surefoot)"
function=$(complete -p surefoot | sed 's/.*-F \\([^ ]*\\).*/\\1/')
complete_words() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  $function surefoot "${!#}" "${@: -2:1}"
  echo "${COMPREPLY[*]}"
}
complete_words surefoot ga
complete_words surefoot ""
complete_words surefoot gate --ba
complete_words surefoot table --cond
complete_words surefoot gat --ba
"""


@pytest.fixture(scope="module")
def replies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    command = folder / "surefoot"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m surefoot "$@"\n')
    command.chmod(0o755)
    own = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(Path(surefoot.__file__).parent.parent)}
    done = subprocess.run(["bash", "-c", SCRIPT], env=os.environ | own, capture_output=True, text=True, cwd=folder)
    return [line.split() for line in done.stdout.splitlines()]


def test_names_of_commands(replies):
    assert replies[0] == ["gate"]
    assert replies[1] == list(COMMANDS)


def test_flags_of_a_command(replies):
    assert replies[2] == ["--baseline"]
    assert replies[3] == ["--condition", "--conditions"]


def test_a_command_that_is_none_has_no_flags(replies):
    assert replies[4:] == [[]]


def test_the_script_is_shown(surefoot):
    shown = surefoot("--help").out
    assert "--install-completion" in shown
    assert "--show-completion" in shown
