"""Pages of the site that are not Markdown in docs/: API reference, adopted documents, tutorials, a live report.

A hook of MkDocs (`hooks` in mkdocs.yml). Links between documents are written for the repository and turned here.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "surefoot"
ADOPTED = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "reporting.md", "CHANGELOG.md": "changes.md"}
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_file())
ADOPTED |= {f"examples/{name}": f"examples/{name}" for name in EXAMPLES}
EXAMPLE = ROOT / "docs" / "example"
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
SOURCES = {page: source for source, page in ADOPTED.items()}
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")


def public_names(package: Path) -> list[str]:
    """`__all__` as the source has it: nothing is imported."""
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            return [str(name) for name in ast.literal_eval(node.value)]
    raise ValueError(f"{package.name} has no __all__")


def api_pages() -> dict[str, str]:
    """The Markdown of each page, by its place: one of `surefoot`, and one of each public package in it."""
    names = public_names(PACKAGE)
    rooms = [name for name in names if (PACKAGE / name).is_dir()]
    own = [name for name in names if name not in rooms]
    listed = "\n".join(f"- [`surefoot.{room}`]({room}.md): {first_line(room)}" for room in rooms)
    head = f"# surefoot\n\nWhat `import surefoot as sf` gives: the names below, and these packages.\n\n{listed}\n{example('.')}"
    pages = {"api/surefoot.md": head + entries("surefoot", own)}
    for room in rooms:
        inner = public_names(PACKAGE / room)
        pages[f"api/{room}.md"] = f"# surefoot.{room}\n\n{first_line(room)}\n{example(room)}" + entries(
            f"surefoot.{room}", inner
        )
    return pages


def first_line(room: str) -> str:
    """The first line of a package's docstring."""
    said = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
    if not said:
        raise ValueError(f"surefoot.{room} has no docstring")
    return said.splitlines()[0]


def example(room: str) -> str:
    """The session in a package's docstring, which the tests run."""
    said = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""
    if ">>>" not in said:
        raise ValueError(f"the docstring of '{room}' has no example")
    return f"\n```pycon\n{said[said.index('>>>') :]}\n```\n"


def entries(package: str, names: list[str]) -> str:
    return "".join(f"\n::: {package}.{name}\n" for name in names)


def tutorial(path: Path) -> str:
    """The Markdown of a notebook: its cells and, below each, what it gave (`scripts/tutorials.py` runs them)."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [shown(output) for output in cell.get("outputs", ())]
    download = f'<a href="{path.name}" download>This page is a notebook: download it.</a>'
    return "\n\n".join([*parts, download]) + "\n"


def shown(output: dict[str, Any]) -> str:
    """An output as Markdown: a picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="The picture that the cell shows" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    if "text/html" in data:
        lines = "".join(data["text/html"]).splitlines()
        return f'<div class="md-typeset__table" markdown="0">{"".join(line.strip() for line in lines)}</div>'
    return "```text\n" + "".join(data["text/plain"] if data else output["text"]).rstrip() + "\n```"


def example_files() -> dict[str, str]:
    """A live report, drawn from the audits that `scripts/example_report.py` keeps, and its script beside it."""
    from plotly.offline import get_plotlyjs

    from surefoot.report.page import SCRIPT, read_audit, render_page

    compared = json.loads((EXAMPLE / "comparison.json").read_text())
    audits = [read_audit(EXAMPLE / name) for name in compared["models"]]
    page = render_page(audits, differences=compared["differences"], notes=compared["notes"], assets="beside")
    return {"live/report.html": page, f"live/{SCRIPT}": get_plotlyjs()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here and those that are adopted."""
    for place, text in api_pages().items():
        files.append(File.generated(config, place, content=text))
    for place, text in example_files().items():
        files.append(File.generated(config, place, content=text))
    for path in NOTEBOOKS:
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=tutorial(path)))
    for source, place in ADOPTED.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links that hold in the repository into those that hold in the site; others are left for --strict to refuse."""
    here = page.file.src_uri
    source = SOURCES.get(here, here if here.startswith("api/") else f"docs/{here}")

    def turned(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        place = ADOPTED.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        place = re.sub(r"^(tutorials/.*)\.ipynb$", r"\1.md", place) if place else None
        return found[0] if place is None else f"{found[1]}{posixpath.relpath(place, posixpath.dirname(here))}{found[3]}"

    return LINK.sub(turned, markdown)
