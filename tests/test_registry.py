import pytest

from surefoot.errors import SurefootError, UnknownName
from surefoot.registry import Registry

TABLE = Registry("thing", [("square", "math:sqrt", "a root"), ("join", "os.path:join", "a path")])


def test_names_and_help_need_no_import():
    assert TABLE.names == ["square", "join"]
    assert [entry.help for entry in TABLE] == ["a root", "a path"]


def test_load_by_name_and_by_path():
    assert TABLE.load("square")(9) == 3
    assert TABLE.load("math:floor")(2.5) == 2


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

    for table in TABLES.values():
        for entry in table:
            assert callable(table.load(entry.name))
            assert entry.help
