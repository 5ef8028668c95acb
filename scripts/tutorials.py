"""Run the tutorials and write their outputs into them: `python scripts/tutorials.py [NAME ...]`.

Each has a kernel and an empty folder of its own. What the cells were when the outputs were made is kept as a hash beside them.
"""

from __future__ import annotations

import hashlib
import os
import sys
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


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with what its cells give now; a cell that fails raises."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=600, kernel_name="python3", coalesce_streams=True, resources=resources)
        client.execute(env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
        for output in cell.get("outputs", ()):
            shown_best(output.get("data", {}))
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], MADE_OF: cells_hash(notebook)}
    return notebook


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        path = FOLDER / f"{name}.ipynb"
        nbformat.write(executed(path), path)
        print(path.name)
