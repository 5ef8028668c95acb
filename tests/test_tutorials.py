"""The tutorials run as they stand, and the outputs that they are shown with are of their own cells."""

import sys
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from tutorials import FOLDER, MADE_OF, NAMES, cells_hash, executed


def kinds(notebook):
    """What each cell of code gives: text, pictures, tables."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[(output.output_type, *output.get("data", {})) for output in cell.outputs] for cell in cells]


def test_the_tutorials_are_these_five():
    assert sorted(NAMES) == sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    assert len(NAMES) == 5


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_runs_and_its_outputs_are_not_stale(name):
    """Numbers differ a little between processors: what is compared is the code, and the kind of each output."""
    path = FOLDER / f"{name}.ipynb"
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    assert stored.metadata[MADE_OF] == cells_hash(stored), f"run scripts/tutorials.py {name}"
    assert kinds(executed(path)) == kinds(stored)
