"""The JSON Schema of `audit.json`, from the classes that are written there: `python -m surefoot.auditing.schema` writes it.

It follows `plain`: an estimate is a value with its ends, a tuple is a list, and a number that is not defined is null.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from pathlib import Path
from typing import Any

from ..intervals import Estimate
from ..metrics import ENDS, range_of
from .migration import SCHEMA
from .number_names import SLIP, SUBJECT
from .result import Audit

FILE = Path(__file__).with_name("audit.schema.json")
Schema = dict[str, Any]
KINDS = {str: "string", bool: "boolean", int: "integer", dict: "object", list: "array"}


def audit_schema() -> Schema:
    """The schema of today's `audit.json`."""
    shared: dict[str, Schema] = {}
    hints = typing.get_type_hints(Audit)
    fields = {field.name: field for field in dataclasses.fields(Audit) if field.name in Audit.PARTS}
    subject = {name: {"type": KINDS[kind]} for name, kind in SUBJECT.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "audit.json of Surefoot",
        "type": "object",
        "properties": {
            "schema": {"const": SCHEMA},
            "subject": {"type": "object", "properties": subject, "required": list(SUBJECT)},
            **{name: schema_of(hints[name], name, shared) for name in Audit.PARTS},
        },
        "required": ["schema", "subject", *required(fields[name] for name in Audit.PARTS)],
        "additionalProperties": False,
        "$defs": dict(sorted(shared.items())),
    }


def schema_of(hint: Any, name: str, shared: dict[str, Schema]) -> Schema:
    """The schema of a type; `name` tells the range of a number, and classes go to `shared`."""
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Any:
        return {}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [schema_of(each, name, shared) for each in inner]}
    if origin is types.NoneType:
        return {"type": "null"}
    if origin in (float, Estimate):
        return number(name, shared) if origin is float else estimate(name, shared)
    if origin in (tuple, list):
        return {"type": "array", "items": schema_of(inner[0], name, shared)}
    if origin is dict and inner:
        return {"type": "object", "additionalProperties": schema_of(inner[1], name, shared)}
    if dataclasses.is_dataclass(origin):
        return of_class(origin, shared)
    return {"type": KINDS[origin]}


def of_class(kind: Any, shared: dict[str, Schema]) -> Schema:
    """A dataclass, described once."""
    if kind.__name__ not in shared:
        hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
        properties = {field.name: schema_of(hints[field.name], field.name, shared) for field in fields}
        shared[kind.__name__] = {"type": "object", "properties": properties, "required": required(fields)}
        shared[kind.__name__]["additionalProperties"] = False
    return {"$ref": f"#/$defs/{kind.__name__}"}


def required(fields: typing.Iterable[dataclasses.Field[Any]]) -> list[str]:
    """The names that have no default."""
    missing = dataclasses.MISSING
    return [field.name for field in fields if field.default is missing and field.default_factory is missing]


def number(name: str, shared: dict[str, Schema]) -> Schema:
    """A number in the range of its name, or null."""
    low, high = range_of(name)
    label = "number" if math.isinf(low) else f"number from {low:g}" + ("" if math.isinf(high) else f" to {high:g}")
    ends = {"minimum": low - SLIP, "maximum": high + SLIP}
    shared[label] = {"type": ["number", "null"], **{key: end for key, end in ends.items() if math.isfinite(end)}}
    return {"$ref": f"#/$defs/{label.replace(' ', '%20')}"}


def estimate(name: str, shared: dict[str, Schema]) -> Schema:
    """A number with the ends of its interval."""
    end = number(name, shared)
    label = end["$ref"].rpartition("/")[2].replace("number", "estimate").replace("%20", " ")
    properties = dict.fromkeys(ENDS, end)
    shared[label] = {"type": "object", "properties": properties, "required": list(ENDS), "additionalProperties": False}
    return {"$ref": f"#/$defs/{label.replace(' ', '%20')}"}


if __name__ == "__main__":
    from ..files import write_json

    write_json(FILE, audit_schema())
