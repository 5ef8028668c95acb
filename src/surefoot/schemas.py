"""Option schemas derived from signatures, so that a default is written once: where the argument is declared."""

from __future__ import annotations

import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from typing import Annotated, Any, ParamSpec, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, create_model

from .errors import SurefootError, UnknownName, shown

P = ParamSpec("P")
R = TypeVar("R")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # plain values only
MOST_PARTS = 100_000  # of a YAML file
SPELLINGS = {"optimizer": "optimiser"}
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:\s*/\s*(\d+\.?\d*))?\s*")


def parse_number(value: Any) -> Any:
    """`"1e-3"` and `"8/255"` as numbers; anything else, `"1/0"` included, unchanged."""
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if match is None or (match[2] and float(match[2]) == 0):
        return value
    number = float(match[1]) / float(match[2]) if match[2] else float(match[1])
    return int(match[1]) if re.fullmatch(r"\s*[-+]?\d+\s*", value) else number


def parse_value(text: str) -> Any:
    """The value after the `=` of `--set name=value`, read as YAML."""
    try:
        return load_yaml(text)
    except ValueError as error:
        raise SurefootError(f"'{text}' is not a value: {error}.") from error


def load_yaml(text: str) -> Any:
    """The content of YAML that is data; a ValueError says in a line what is wrong.

    Names that stand for other parts may make a few letters very large: their size is counted before anybody walks them.
    """
    try:
        content = yaml.load(text, Loader=LOADER)  # the safe one, in C where there is one
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError((str(error).splitlines() or ["it is nested too deeply"])[0]) from error
    if size_of(content, {}) > MOST_PARTS:
        raise ValueError(f"it has more than {MOST_PARTS:,} parts, by names that stand for others")
    return content


def size_of(content: Any, known: dict[int, float]) -> float:
    """How many parts there are once every name is replaced by what it stands for; without end for one that holds itself."""
    if not isinstance(content, dict | list | tuple | set):
        return 1
    if id(content) not in known:
        known[id(content)] = math.inf  # while it is being counted
        parts = [*content.keys(), *content.values()] if isinstance(content, dict) else content
        known[id(content)] = 1 + sum(size_of(part, known) for part in parts)
    return known[id(content)]


@cache
def schema_of(target: Callable[..., Any], leave_out: tuple[str, ...] = ()) -> type[BaseModel]:
    """A pydantic model with a field for each keyword of a constructor or function."""
    function = target.__init__ if inspect.isclass(target) else target
    hints = hints_of(function, leave_out) if inspect.isfunction(function) else {}
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(target).parameters.values():
        if parameter.name in leave_out or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = hints.get(parameter.name, Any)
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (_numeric(hint), default)
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())
    return create_model(getattr(target, "__name__", "Options"), __config__=config, **fields)


def hints_of(function: Callable[..., Any], leave_out: tuple[str, ...]) -> dict[str, Any]:
    """The types of a function's arguments; those that are left out may name what is not imported."""
    wanted = {name: hint for name, hint in function.__annotations__.items() if name not in (*leave_out, "return")}
    return typing.get_type_hints(types.SimpleNamespace(__annotations__=wanted), inspect.unwrap(function).__globals__)


def _numeric(hint: Any) -> Any:
    """The same type, reading numbers from text unless it takes text itself."""
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    takes_number = any(part in (int, float) for part in parts)
    return Annotated[hint, BeforeValidator(parse_number)] if takes_number and str not in parts else hint


def defaults_of(target: Callable[..., Any], leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every option with its default; required ones are left out."""
    parameters = inspect.signature(target).parameters.values()
    return {each.name: each.default for each in parameters if each.name not in leave_out and each.default is not each.empty}


def check_options(
    section: str, target: Callable[..., Any], options: Mapping[str, Any], leave_out: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Options with their defaults filled in; an unknown name or a wrong type is one clear line."""
    schema, options = schema_of(target, leave_out), british(options)
    check_keys(f"option of {section}", options, schema.model_fields)
    try:
        return dict(schema(**options))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([section, str(first["loc"][0])] if first["loc"] else [section])
        if first["type"] == "missing":
            raise SurefootError(f"{where} must be given.") from error
        raise SurefootError(f"{where}: {first['msg'].lower()}, got {shown(first['input'])}.") from error


def british(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options under the names that we spell them by; the American spelling is taken too."""
    for american, name in SPELLINGS.items():
        if american in options and name in options:
            raise SurefootError(f"{american} and {name} are the same option: give one of them.")
    return {SPELLINGS.get(name, name): value for name, value in options.items()}


def any_spelling(function: Callable[P, R]) -> Callable[P, R]:
    """A function that takes its options in either spelling."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **british(kwargs))

    return called


def check_keys(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Every key must be known."""
    known = list(known)
    for key in given:
        if key not in known:
            raise UnknownName(kind, key, known)
