"""Run the tutorials and write their outputs into them: `python scripts/tutorials.py [NAME ...]`.

Each has a kernel and an empty folder of its own. What the cells were when the outputs were made is kept as a hash beside them.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
NAMES = ("audit-a-model", "train-in-your-loop", "guarantees", "strange-pictures", "gate-and-monitor")
MADE_OF = "made_of"  # metadata: the hash of the cells that the outputs belong to


def cells_hash(notebook: nbformat.NotebookNode) -> str:
    """Of the code, in order."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256("\n%%\n".join(code).encode()).hexdigest()[:16]


def shown_best(data: dict[str, object]) -> None:
    """Keep the best form of an output alone."""
    best = next((kind for kind in ("image/png", "text/html") if kind in data), None)
    for kind in [kind for kind in data if best is not None and kind != best]:
        del data[kind]


def forget(folder: str) -> nbformat.NotebookNode:
    """A cell after which a kernel knows no name any more and is in another folder; what it has imported it keeps."""
    return nbformat.v4.new_code_cell(f"%reset -f\n__import__('os').chdir({folder!r})")


def executed(*paths: Path) -> list[nbformat.NotebookNode]:
    """The notebooks with what their cells give now, all in one kernel; a cell that fails raises."""
    notebooks = [nbformat.read(path, as_version=4) for path in paths]
    with ExitStack() as stack:
        folders = [stack.enter_context(TemporaryDirectory()) for _ in paths]
        whole = nbformat.v4.new_notebook(metadata=notebooks[0].metadata)
        whole.cells = list(notebooks[0].cells)
        for folder, notebook in zip(folders[1:], notebooks[1:], strict=True):
            whole.cells += [forget(folder), *notebook.cells]
        resources = {"metadata": {"path": folders[0]}}
        client = NotebookClient(whole, timeout=600, kernel_name="python3", coalesce_streams=True, resources=resources)
        client.execute(env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})
    for notebook in notebooks:
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times of day
            for output in cell.get("outputs", ()):
                shown_best(output.get("data", {}))
        notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], MADE_OF: cells_hash(notebook)}
    return notebooks


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        path = FOLDER / f"{name}.ipynb"
        nbformat.write(executed(path)[0], path)
        print(path.name)
