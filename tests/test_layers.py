"""Data flows one way: a package imports only from those above it."""

import ast
from pathlib import Path

import pytest

import surefoot

SOURCE = Path(surefoot.__file__).parent
SHARED = [
    *("version", "errors", "files", "limits", "lifelines", "allocator", "schemas", "registry", "keys", "seeds", "intervals"),
    *("types", "plain", "storage", "progress", "metrics", "cluster", "notebooks"),
]
ROOMS = [
    *("imageops", "data", "models", "views", "corruptions", "calibration", "ood", "attacks", "objectives"),
    *("training", "geometry", "measurements", "auditing", "studies", "report", "cli"),
]
ORDER = dict.fromkeys(SHARED, 0) | {name: place for place, name in enumerate(ROOMS, 1)}


def imported_rooms(path: Path) -> set[str]:
    """The top-level names below `surefoot` that a file imports, wherever in the file."""
    package = ["surefoot", *path.relative_to(SOURCE).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("surefoot.")}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_only_from_above(room):
    files = list((SOURCE / room).rglob("*.py"))
    assert any(file.name != "__init__.py" for file in files), f"{room} has no inhabitant"
    for file in files:
        below = {name for name in imported_rooms(file) if ORDER.get(name, 99) > ORDER[room]}
        assert not below, f"{file.relative_to(SOURCE)} imports {below}"


def test_shared_files_know_no_room():
    for name in SHARED:
        assert imported_rooms(SOURCE / f"{name}.py") <= set(SHARED), name


def test_every_room_is_in_the_list():
    here = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert here == set(ROOMS)


def test_the_check_sees_an_import_from_below(tmp_path, monkeypatch):
    monkeypatch.setattr("test_layers.SOURCE", tmp_path)
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "wrong.py"
    file.write_text("def f():\n    from ..training.loop import fit\n    import surefoot.cli.main\n")
    assert imported_rooms(file) == {"training", "cli"}
