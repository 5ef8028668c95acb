"""Every figure is reached from a page or a command, and none needs torch."""

import ast
import subprocess
import sys
from pathlib import Path

import surefoot.report.plots as plots

FOLDER = Path(plots.__file__).parent
SOURCE = FOLDER.parents[1]
FILES = [path for path in sorted(FOLDER.glob("*.py")) if path.stem != "__init__"]


def figures():
    """The public functions that draw a figure, by name."""
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.endswith("_figure") and node.name != "new_figure":
                yield path.stem, node.name


def names_in(path):
    """Every name that a file uses after it imported it."""
    return {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}


def test_every_figure_is_on_a_page_or_in_a_command():
    readers = [
        *(FOLDER.parent / "sections").glob("*.py"),
        FOLDER.parent / "study_page.py",
        FOLDER.parent / "study_figures.py",
        *(SOURCE / "cli").glob("*.py"),
    ]
    used = set().union(*map(names_in, readers))
    found = dict(map(reversed, figures()))
    assert len(found) > 30
    assert {name: file for name, file in found.items() if name not in used} == {}


def test_no_helper_is_left_over():
    """What the files of figures define beside them is used by one of them, or by a section."""
    readers = [*FILES, *(FOLDER.parent / "sections").glob("*.py")]
    used = set().union(*map(names_in, readers))
    helpers = {
        node.name
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.endswith("_figure")
    }
    assert helpers - used == set()


def test_figures_know_no_torch():
    code = (
        "import pkgutil, sys\nfrom importlib import import_module\nimport surefoot.report.plots as plots\n"
        "names = [module.name for module in pkgutil.iter_modules(plots.__path__)]\n"
        "[import_module(f'surefoot.report.plots.{name}') for name in names]\nprint(len(names) > 5, 'torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["True", "False"]
