"""Every flag of every command with wrong words: one line, exit 2, nothing written. A new flag is walked by itself.

Wrong numbers are refused before anything is read, and are walked where that is tested (test_quick_answers).
"""

import re
import shutil
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module

import pytest
import typer

import small_audits
from surefoot.calibration.scoring import scores
from surefoot.cli.main import COMMANDS
from surefoot.data import arrays
from surefoot.data.arguments import MOST_WORKERS
from surefoot.training import loop
from surefoot.training.launcher import MOST

HUGE = "9" * 26
NUMBERS = ("abc", "nan", "-1", HUGE, "")  # wrong for every whole number
FLOATS = ("abc", "nan", "1e400", "-1e9", "")
WORDS = ("", "no-such-name", "a file/x", "os:system", "no/such/place", "[/red]", "\x1b[31m", "a file", "=", ",", "../x", HUGE)
ALWAYS, TURNS = 3, 3  # of the words: the first for every flag, and so many of the others in turn; all in the stress suite
BASE = {
    "demo": ["--output", "out", "--epochs", 1],
    "train": ["--output", "out"],
    "audit": ["run", "--output", "out"],
    "table": ["audited"],
    "compare": ["audited", "other"],
    "gate": ["audited", "--rule", "ece < 1"],
    "export": ["run", "--output", "out.onnx"],
    "card": ["run", "--output", "out"],
    "calibrate": ["run", "--output", "out"],
    "corrupt": ["--data", "digits", "--output", "out"],
    "attack": ["run", "--attack", "fgsm", "--eps", 0, "--max-images", 2, "--no-check"],
    "certify": ["run", "--n", 9, "--n0", 3, "--max-images", 2],
    "monitor": ["run", "--data", "digits"],
    "study list": [],
    "study figure": ["main", "--results", "results", "--output", "out.html"],
    "study run": ["main", "--results", "results"],
    "study show": ["main", "--results", "results"],
    "study status": ["main", "--results", "results"],
    "list": [],
    "doctor": [],
}
PYTHON_NAME = re.compile(r"\b[A-Z]\w*(Error|Exception|Warning)\b")


class Reached(BaseException):
    """The work itself began: the values were taken."""


def reached(*_, **__):
    raise Reached


def commands() -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """Every command with its parameters, those of a group too."""
    for name in COMMANDS:
        command = typer.main.get_command(import_module(f"surefoot.cli.{'listing' if name == 'list' else name}").app)
        if hasattr(command, "commands"):
            yield from ((f"{name} {inner}", each) for inner, each in command.commands.items())
        else:
            yield name, command


def wrong_values(parameter) -> tuple[str, ...]:
    """By the type of the parameter, which newer typers keep elsewhere."""
    described = getattr(parameter, "type_descriptor", None)
    kind = described.annotation.__name__ if described is not None else parameter.type.name
    known = {"int": NUMBERS, "float": FLOATS, "bool": ()}
    return next((values for name, values in known.items() if kind.startswith(name)), WORDS)


def arguments_of(name, parameter, value):
    """A right command line with one wrong value."""
    words = [*name.split(), *map(str, BASE[name])]
    if parameter.param_type_name == "argument":
        places = [place for place, word in enumerate(words) if word in ("run", "audited", "main")]
        return [*words[: places[0]], value, *words[places[0] + 1 :]] if places else [*words, value]
    return [*words, max(parameter.opts, key=len), value]


PARAMETERS = [
    pytest.param(name, parameter, id=f"{name} {max(parameter.opts, key=len)}")
    for name, command in commands()
    for parameter in command.params
    if parameter.name != "help" and wrong_values(parameter)
]
NOT_A_GRID = "random"  # a number that is refused once the study is read, if it is not one to search
CASES = [case for case in PARAMETERS if wrong_values(case.values[1]) is WORDS or case.values[1].name == NOT_A_GRID]


@pytest.fixture(scope="module")
def filled(run, tmp_path_factory):
    """A run, two audits and a file."""
    folder = tmp_path_factory.mktemp("filled")
    shutil.copytree(run.folder, folder / "run")
    for name in ("audited", "other"):
        small_audits.write(folder / name, small_audits.audit(name), small_audits.predictions(0))
    (folder / "a file").write_text("not a folder")
    (folder / "results").mkdir()
    return folder


@pytest.fixture
def place(here, filled, monkeypatch):
    """The same, a copy for each test, and commands that stop where their work begins."""
    shutil.copytree(filled, here, dirs_exist_ok=True)
    monkeypatch.setattr(arrays, "load_digits", digits_once)
    monkeypatch.setattr(loop, "train", reached)
    monkeypatch.setattr("surefoot.attacks.evaluation.scores", partial(scores, intervals=10))  # an attack is whole, and quick
    monkeypatch.setattr("surefoot.auditing.audit.check_first", lambda *_: ())
    monkeypatch.setattr("surefoot.auditing.audit.begin", reached)
    monkeypatch.setattr("surefoot.corruptions.copies.write_missing", reached)
    monkeypatch.setattr("surefoot.models.classifier.predict", reached)
    monkeypatch.setattr("surefoot.models._export.export", reached)
    monkeypatch.setattr("surefoot.studies.runner.run_study", reached)
    monkeypatch.setattr("subprocess.Popen.__init__", reached)  # a mistyped number of processes must not be tried out
    return here


real_digits = arrays.load_digits


@cache
def digits_once():
    return real_digits()


def contents(folder):
    return sorted(str(path) for path in folder.rglob("*"))


def some_of(values, number):
    """A few of the words, others for the next flag."""
    others = values[ALWAYS:]
    return values[:ALWAYS] + tuple(others[(TURNS * number + k) % len(others)] for k in range(TURNS))


@pytest.mark.parametrize("thorough", [False, pytest.param(True, marks=pytest.mark.stress)])
@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_a_wrong_value_is_one_line(surefoot, place, name, parameter, thorough):
    before, number = contents(place), [case.values for case in CASES].index((name, parameter))
    for value in wrong_values(parameter) if thorough else some_of(wrong_values(parameter), number):
        arguments = arguments_of(name, parameter, value)
        try:
            found = surefoot(*arguments)
        except Reached:
            found = None
        number = wrong_values(parameter) is not WORDS
        if found is None or found.code == 0:
            assert not number, f"{arguments} was taken"
            assert value, f"{arguments} was taken"
            restore(place, before)
            continue
        assert (found.code, found.err.count("\n"), found.out) == (2, 1, ""), (arguments, found)
        assert found.err.startswith("surefoot: "), (arguments, found.err)
        assert not PYTHON_NAME.search(found.err), (arguments, found.err)
        assert "\x1b" not in found.err, arguments
        assert contents(place) == before, (arguments, set(contents(place)) - set(before))


def restore(folder, before):
    """Remove what an accepted value wrote."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if str(path) not in before:
            path.rmdir() if path.is_dir() else path.unlink()


def test_every_command_is_walked():
    assert {name for name, _ in commands()} == set(BASE)
    assert sum(len(wrong_values(case.values[1])) for case in PARAMETERS) > 400


COUNTS = [case for case in PARAMETERS if case.values[1].name in ("processes", "jobs", "threads", "workers")]


@pytest.mark.parametrize(("name", "parameter"), COUNTS)
def test_a_count_is_bounded_before_anything_is_started(surefoot, place, name, parameter):
    """The least that is too many: nothing is launched (`place` forbids it), and the line says how many may be."""
    found = surefoot(*arguments_of(name, parameter, 1 + (MOST_WORKERS if parameter.name == "workers" else MOST)))
    assert found.code == 2
    assert re.search(
        rf"{parameter.name} must be (from 1|0) to {MOST_WORKERS if parameter.name == 'workers' else MOST}", found.err
    )


def test_every_count_is_walked():
    assert {case.values[1].name for case in COUNTS} == {"processes", "jobs", "threads", "workers"}
    assert len(COUNTS) >= 14
