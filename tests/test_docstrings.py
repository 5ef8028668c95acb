"""Examples in docstrings run as they stand, and every public package begins with one."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import surefoot as sf

PUBLIC = ["surefoot", *(f"surefoot.{name}" for name in sf._ROOMS)]


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_package(name):
    module = import_module(name)
    found = doctest.DocTestFinder(recurse=False).find(module, name)
    assert found[0].examples, "no example"
    assert doctest.DocTestRunner().run(found[0]) == doctest.TestResults(0, len(found[0].examples))


def test_other_examples_in_docstrings():
    """Of functions and classes, in whatever module has any."""
    source = Path(sf.__file__).parent
    for path in sorted(source.rglob("[!_]*.py")):
        if ">>>" in path.read_text():
            name = ".".join(path.relative_to(source.parent).with_suffix("").parts)
            assert doctest.testmod(import_module(name)).failed == 0, name
