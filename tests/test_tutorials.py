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


@pytest.fixture(scope="module")
def together(once):
    """A folder of them as they were run one after the other in one kernel that forgets the names of each."""

    def run(folder):
        folder.mkdir()
        for name, notebook in zip(NAMES, executed(*(FOLDER / f"{name}.ipynb" for name in NAMES)), strict=True):
            nbformat.write(notebook, folder / f"{name}.ipynb")

    return once("tutorials", run)


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_runs_and_its_outputs_are_not_stale(together, name):
    """Numbers differ a little between processors: what is compared is the code, and the kind of each output."""
    stored = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(stored)
    assert stored.metadata[MADE_OF] == cells_hash(stored), f"run scripts/tutorials.py {name}"
    assert kinds(nbformat.read(together / f"{name}.ipynb", as_version=4)) == kinds(stored)


@pytest.mark.stress
@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_runs_in_a_kernel_of_its_own(name):
    path = FOLDER / f"{name}.ipynb"
    assert kinds(executed(path)[0]) == kinds(nbformat.read(path, as_version=4))
