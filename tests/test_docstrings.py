"""Examples in docstrings run as they stand; every public package and every name of `surefoot` itself has one."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import surefoot as sf

PUBLIC = ["surefoot", *(f"surefoot.{name}" for name in sf._ROOMS)]
NAMES = {name: f"surefoot.{home}.{name}" for name, home in sf._HOME.items()}


def check(found):
    assert doctest.DocTestRunner().run(found) == doctest.TestResults(0, len(found.examples)), found.name


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_package(name):
    found = doctest.DocTestFinder(recurse=False).find(import_module(name), name)
    assert found[0].examples, "no example"
    check(found[0])


def test_every_name_is_known_by_its_home():
    assert {name for name in sf.__all__ if callable(getattr(sf, name))} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_name_at_the_top(name, here):
    """In an empty folder, with nothing imported that it does not import itself."""
    (found,) = doctest.DocTestFinder(recurse=False).find(getattr(sf, name), name, module=False, globs={})
    assert found.examples, "no example"
    check(found)


def test_other_examples_in_docstrings(here):
    """Of functions and classes, in whatever module has any."""
    source = Path(sf.__file__).parent
    for path in sorted(source.rglob("[!_]*.py")):
        if ">>>" in path.read_text():
            name = ".".join(path.relative_to(source.parent).with_suffix("").parts)
            for found in doctest.DocTestFinder().find(import_module(name), name):
                if found.name not in NAMES.values():
                    check(found)
