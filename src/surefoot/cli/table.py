"""`surefoot table`: the rows behind an audit, one for each image and condition, as a file or on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..auditing.table_files import table_folder
from ..errors import UnknownName
from . import options as flag

FORMATS = ("csv", "parquet")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def table(
    target: Annotated[Path, typer.Argument(help="Run folder with an audit, audit folder or audit.json")],
    condition: Annotated[str | None, typer.Option(metavar="NAME", help="Only this one, for example clean or fog/3")] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="csv or parquet [default: what --output ends in, else csv]")
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it here [default: print as CSV]")] = None,
    conditions: Annotated[bool, typer.Option("--conditions", help="Only the names of the conditions")] = False,
    quiet: flag.Quiet = False,
) -> None:
    """Write the table of an audit: a row for each image and condition, a column for each thing that was measured there."""
    if format_ is not None and format_ not in FORMATS:
        raise UnknownName("format", format_, FORMATS)
    flag.check_output(output)
    table_folder(target)  # which says that there is none
    from ..auditing.table import conditions_in, read_table, write_table

    if conditions:
        print("\n".join(conditions_in(target)))
    elif output is None and format_ != "parquet":
        print(read_table(target, condition).to_csv(index=False), end="")
    else:
        kind = format_ or (output.suffix[1:] if output is not None and output.suffix[1:] in FORMATS else "csv")
        path = (output or Path("table")).with_suffix(f".{kind}")
        rows = write_table(target, path, condition)
        if not quiet:
            print(f"{rows} rows: {path}")
