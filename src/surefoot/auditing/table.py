"""The table behind an audit: a row for each image and condition, in Parquet parts that are renamed into place.

Knows no torch: a comparison reads two tables and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ..errors import SurefootError, UnknownName
from ..files import replacing
from ..measurements.base import CLEAN, STANDARD, Rows
from .table_files import table_folder, table_in

if TYPE_CHECKING:
    from pandas import DataFrame

logger = logging.getLogger("surefoot")
Part = dict[str, Rows]  # rows by condition
PREDICTIONS = "predictions.csv"
FORMULA = tuple("=+-@\t\r")
PLAN = b"surefoot.plan"
TYPES = {"int32": pa.int32(), "bool": pa.bool_(), "float32": pa.float32()}


def schema_of(adds: Sequence[str], classes: int) -> pa.Schema:
    """The columns of every part: what names a row, the standard ones, what measurements add, and the logits of clean images."""
    keys = [("image", pa.string()), ("index", pa.int64()), ("condition", pa.dictionary(pa.int32(), pa.string()))]
    numbers = [(name, TYPES[kind]) for name, kind in STANDARD.items()] + [("temperature", pa.float64())]
    more = [(name, pa.float32()) for name in dict.fromkeys(adds) if name not in STANDARD]
    return pa.schema([*keys, *numbers, *more, ("logits", pa.list_(pa.float32(), classes))])


def part_path(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}.parquet"


def write_part(path: Path, part: Part, names: Mapping[int, str], schema: pa.Schema, plan: str) -> None:
    """Rename a part into its place; `names` has the id of each image by its index."""
    whole = pa.concat_tables([as_arrow(condition, rows, names, schema) for condition, rows in part.items()])
    whole = whole.unify_dictionaries().replace_schema_metadata({PLAN: plan.encode()})
    with replacing(path) as beside:
        pq.write_table(whole, beside, compression="zstd")


def as_arrow(condition: str, rows: Rows, names: Mapping[int, str], schema: pa.Schema) -> pa.Table:
    """Rows of one condition; a column that they lack is null, and so is a number that is not defined."""
    count = len(rows["index"])
    columns: list[pa.Array] = []
    for field in schema:
        if field.name == "image" and "image" not in rows:
            columns.append(pa.array([names[index] for index in rows["index"].tolist()], field.type))
        elif field.name == "condition":
            columns.append(pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([condition])))
        elif field.name not in rows:
            columns.append(pa.nulls(count, field.type))
        elif field.name == "logits":
            flat = pa.array(np.ascontiguousarray(rows["logits"], np.float32).reshape(-1))
            columns.append(pa.FixedSizeListArray.from_arrays(flat, field.type.list_size))
        else:
            columns.append(pa.array(rows[field.name], field.type, from_pandas=True))
    return pa.Table.from_arrays(columns, schema=schema)


def read_part(path: Path) -> Part:
    """The rows of a part by condition."""
    return by_condition(pq.read_table(path))


def by_condition(whole: pa.Table) -> Part:
    """Rows by their condition; a column without any value is left out."""
    conditions = whole.unify_dictionaries()["condition"].combine_chunks()
    names = conditions.dictionary.to_pylist()
    where = conditions.indices.to_numpy()
    columns = {name: as_numpy(whole[name]) for name in whole.column_names if name != "condition"}
    return {
        name: {column: values[where == number] for column, values in columns.items() if values is not None}
        for number, name in enumerate(names)
    }


def as_numpy(column: pa.ChunkedArray) -> np.ndarray[Any, Any] | None:
    """A column as an array, NaN where a number is null; None where all of it is."""
    if column.null_count == len(column):
        return None
    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        filled = pc.fill_null(column, pa.scalar([float("nan")] * size, column.type)) if column.null_count else column
        flat: np.ndarray[Any, Any] = filled.combine_chunks().flatten().to_numpy()
        return flat.reshape(-1, size)
    values: np.ndarray[Any, Any] = column.to_numpy()
    return values


def belongs(path: Path, plan: str) -> bool:
    """Whether a part is there and is of this plan."""
    if not path.is_file():
        return False
    try:
        return bool((pq.read_metadata(path).metadata or {}).get(PLAN) == plan.encode())
    except (pa.ArrowException, OSError) as error:
        logger.warning("'%s' is not whole (%s) and is measured again", path, str(error).splitlines()[0])
        return False


def in_order(parts: Sequence[Rows]) -> Rows:
    """Rows of one condition as one, in the order of their index; a column that only some have is NaN elsewhere."""
    names = dict.fromkeys(name for part in parts for name in part)
    order = np.argsort(np.concatenate([part["index"] for part in parts]), kind="stable")
    return {
        name: np.concatenate([part[name] if name in part else np.full(len(part["index"]), np.nan) for part in parts])[order]
        for name in names
    }


def rows_in(folder: Path, columns: Callable[[pa.Schema], Sequence[str]], chosen: pc.Expression | None = None) -> pa.Table:
    """Some columns of all parts of a table, of the rows that are chosen."""
    try:
        data = ds.dataset(sorted(folder.glob("part-*.parquet")))
        return data.to_table(columns=list(columns(data.schema)), filter=chosen)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SurefootError(f"The table in '{folder}' cannot be read: {str(error).splitlines()[0]}") from error


def key_of(folder: Path) -> str:
    """The plan that the parts of a table are of."""
    first = min(folder.glob("part-*.parquet"))
    try:
        return str((pq.read_metadata(first).metadata or {}).get(PLAN, b"").decode())
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise SurefootError(f"'{first}' is no part of a table: {str(error).splitlines()[0]}") from error


def read_conditions(folder: Path, conditions: Sequence[str], columns: Sequence[str] | None = None) -> Part:
    """The rows of some conditions, in the order of their index; what the table lacks is not there.

    All columns but the logits, or some, of which `index` must be one.
    """
    own = None if columns is None else ["condition", *columns]
    whole = rows_in(folder, lambda schema: own or without_logits(schema), pc.field("condition").isin(list(conditions)))
    if not len(whole):
        return {}
    return {name: in_order([rows]) for name, rows in by_condition(whole).items() if len(rows["index"])}


def read_table(path: str | Path, condition: str | None = None, *, columns: Sequence[str] | None = None) -> DataFrame:
    """The table of an audit as a pandas data frame: all of it but the logits, or one condition, or some columns."""

    def known(schema: pa.Schema) -> Sequence[str]:
        for name in columns or ():
            if name not in schema.names:
                raise UnknownName("column", name, schema.names)
        return columns or without_logits(schema)

    whole = rows_in(table_folder(path), known, None if condition is None else pc.field("condition") == condition)
    if condition is not None and len(whole) == 0:
        raise UnknownName("condition", condition, conditions_in(path))
    frame: DataFrame = whole.to_pandas()
    return frame


def without_logits(schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name != "logits"]


def conditions_in(path: str | Path) -> list[str]:
    """The conditions of a table, the clean images first."""
    column = rows_in(table_folder(path), lambda _: ["condition"])["condition"]
    names = sorted(set(column.cast(pa.string()).unique().to_pylist()))
    return sorted(names, key=lambda name: name != CLEAN)


def write_table(path: str | Path, output: str | Path, condition: str | None = None) -> int:
    """Write a table as one `.csv` or `.parquet`, as the name says; the number of its rows."""
    output = Path(output)
    frame = read_table(path, condition)
    if output.suffix not in (".csv", ".parquet"):
        raise SurefootError(f"output must end in .csv or .parquet, got '{output}'.")
    with replacing(output) as beside:
        if output.suffix == ".csv":
            frame.to_csv(beside, index=False)
        else:
            frame.to_parquet(beside, index=False)
    return len(frame)


def write_predictions(folder: str | Path, classes: Sequence[str]) -> Path | None:
    """`predictions.csv` in the folder of an audit: the file, label, answer and confidence of each image; if it has a table.

    A text that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    if table_in(Path(folder)) is None:
        return None
    frame = read_table(folder, CLEAN)[["image", "label", "predicted", "correct", "confidence"]]
    for column in ("label", "predicted"):
        frame[column] = [classes[number] if number < len(classes) else number for number in frame[column]]
    for column in ("image", "label", "predicted"):
        frame[column] = [f"'{text}" if text[:1] in FORMULA else text for text in frame[column].astype(str)]
    output = Path(folder) / PREDICTIONS
    with replacing(output) as beside:
        frame.to_csv(beside, index=False)
    return output
