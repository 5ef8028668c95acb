"""Where the table of an audit is; finding it needs no pyarrow."""

from __future__ import annotations

from pathlib import Path

from ..errors import NotFound

FOLDER = "table"


def table_folder(path: str | Path) -> Path:
    """Where the table of an audit is: `path` is the folder of the audit, its `audit.json`, or the table itself."""
    path = Path(path)
    for folder in (path / "audit-data" / FOLDER, path.parent / "audit-data" / FOLDER, path):
        if folder.is_dir() and any(folder.glob("part-*.parquet")):
            return folder
    raise NotFound("table of an audit", path)


def table_in(folder: Path) -> Path | None:
    """The table beside an `audit.json`, if there is one."""
    try:
        return table_folder(folder)
    except NotFound:
        return None
