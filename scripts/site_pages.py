"""Pages of the site that are not in docs/: an API page for every public package, and documents of the repository.

A hook of MkDocs (`hooks` in mkdocs.yml). Links between documents are written for the repository and turned here.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "surefoot"
ADOPTED = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "reporting.md", "CHANGELOG.md": "changes.md"}
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_file())
ADOPTED |= {f"examples/{name}": f"examples/{name}" for name in EXAMPLES}
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
    head = f"# surefoot\n\nWhat `import surefoot as sf` gives: the names below, and these packages.\n\n{listed}\n"
    pages = {"api/surefoot.md": head + entries("surefoot", own)}
    for room in rooms:
        inner = public_names(PACKAGE / room)
        pages[f"api/{room}.md"] = f"# surefoot.{room}\n\n{first_line(room)}\n" + entries(f"surefoot.{room}", inner)
    return pages


def first_line(room: str) -> str:
    """The first line of a package's docstring."""
    said = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
    if not said:
        raise ValueError(f"surefoot.{room} has no docstring")
    return said.splitlines()[0]


def entries(package: str, names: list[str]) -> str:
    return "".join(f"\n::: {package}.{name}\n" for name in names)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here and those that are adopted."""
    for place, text in api_pages().items():
        files.append(File.generated(config, place, content=text))
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
        return found[0] if place is None else f"{found[1]}{posixpath.relpath(place, posixpath.dirname(here))}{found[3]}"

    return LINK.sub(turned, markdown)
