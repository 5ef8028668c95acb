import sys

import pytest

from surefoot.errors import SurefootError, UnknownName
from surefoot.registry import Own, Registry, import_target, is_code, refuse_code

ROWS = [("square", "math:sqrt", "a root"), ("join", "os.path:join", "a path")]
TABLE = Registry("thing", ROWS, Own("something to call", callable))


def test_names_and_help_need_no_import():
    assert TABLE.names == ["square", "join"]
    assert [entry.help for entry in TABLE] == ["a root", "a path"]


def test_load_by_name_and_by_path():
    assert TABLE.load("square")(9) == 3
    assert TABLE.load("math:floor")(2.5) == 2


def test_ones_own_must_be_of_the_right_kind():
    with pytest.raises(SurefootError, match=r"^thing 'math:pi' must be something to call\.$"):
        TABLE.load("math:pi")


def test_a_closed_table_imports_nothing_else():
    with pytest.raises(UnknownName, match=r"^Unknown thing 'antigravity:fly'"):
        Registry("thing", ROWS).load("antigravity:fly")
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("name", ["a:b", "a.b:c", "_a1:_"])
def test_names_of_code(name):
    assert is_code(name)
    for content in (name, f" {name} ", f"noise+{name}", ["x", {"deep": [{"name": name}]}], {name: None}):
        with pytest.raises(SurefootError, match=f"^Recipe 'r' names code, '{name}': .* pass --allow-code"):
            refuse_code("Recipe 'r'", {"objective": content})


@pytest.mark.parametrize(
    "name",
    [
        "noise",
        "blur+noise",
        "C:/data",
        "C:\\data",
        "hfds/x:label",
        "hf-hub:a/b",
        "a b:c",
        "a:",
        ":a",
        "python:<lambda>",
        3,
        None,
    ],
)
def test_other_words_are_no_code(name):
    refuse_code("Recipe 'r'", {"objective": [name]})


def test_a_name_from_python_is_not_imported():
    with pytest.raises(SurefootError, match=r"thing 'python:mine' came from Python"):
        TABLE.load("python:mine")


def test_unknown_name():
    with pytest.raises(UnknownName, match=r"Unknown thing 'sqare'\. Did you mean 'square'\?"):
        TABLE.load("sqare")


@pytest.mark.parametrize(
    ("path", "message"), [("no_such_package.x:y", "cannot be imported"), ("math:flor", "Did you mean 'floor'")]
)
def test_wrong_path(path, message):
    with pytest.raises(SurefootError, match=message):
        TABLE.load(path)


def test_a_broken_module_shows_its_own_error(here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    (here / "broken_method.py").write_text("import no_such_dependency")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        TABLE.load("broken_method:Method")


def test_duplicates_raise():
    with pytest.raises(SurefootError, match="registered twice"):
        Registry("thing", [("a", "x:y", ""), ("a", "x:z", "")])


def test_every_registered_object_can_be_imported():
    from surefoot.cli.listing import TABLES

    for target in TABLES.values():
        table = import_target("table", target)
        for entry in table:
            assert callable(table.load(entry.name))
            assert entry.help
