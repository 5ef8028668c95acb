"""The entry point: exit codes of what nobody expected, readers that leave, letters that a terminal does not have."""

import os
import subprocess
import sys

import pytest
import typer

from surefoot.cli import main


@pytest.fixture
def broken(monkeypatch):
    """`surefoot doctor` ends with this error."""

    def break_with(error):
        app = typer.Typer()

        @app.command()
        def doctor():
            raise error

        monkeypatch.setattr("surefoot.cli.doctor.app", app)

    return break_with


def test_an_unexpected_error_is_one_line_and_exit_2(surefoot, broken):
    broken(RuntimeError("first\nsecond"))
    found = surefoot("doctor")
    assert (found.code, found.err) == (2, "surefoot: RuntimeError: first second (--debug shows where)\n")
    assert "Traceback" in surefoot("doctor", "--debug").err


def test_a_file_in_another_encoding_is_no_broken_rule(surefoot, here):
    (here / "audit.json").write_text("{}", encoding="utf-16")
    found = surefoot("gate", "audit.json", "--rule", "ece < 1")
    assert (found.code, found.err.count("\n")) == (2, 1)


def test_an_interrupt_stays_130(surefoot, broken):
    broken(KeyboardInterrupt())
    assert surefoot("doctor").code == 130


@pytest.mark.parametrize("arguments", [[], ["study"]])
def test_without_arguments_the_help_keeps_its_lines(surefoot, arguments):
    found = surefoot(*arguments)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("Usage: surefoot")
    assert "\nOptions:\n" in found.err


def shell(*arguments, **more):
    return subprocess.Popen([sys.executable, "-m", "surefoot", *arguments], stderr=subprocess.PIPE, **more)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_is_not_an_error(unbuffered):
    ours, theirs = os.pipe()
    os.close(ours)
    with shell("study", "list", stdout=theirs, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}) as process:
        os.close(theirs)
        assert process.stderr.read() == b""
    assert process.returncode == main.BROKEN_PIPE


def test_what_was_found_stands_without_a_reader(monkeypatch):
    class Left:
        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(main, "without_reader", lambda: main.BROKEN_PIPE)
    monkeypatch.setattr("sys.stdout", Left())
    assert (main.flushed(1), main.flushed(0)) == (1, main.BROKEN_PIPE)


def test_letters_that_the_terminal_does_not_have():
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    code = "import sys; from surefoot.cli import main; main.app = lambda *a, **b: print('ECE ↓'); main.run([])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [b"ECE", b"?"], b"")
