"""Files are written beside their place and renamed into it, so a reader never sees half of one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import NotFound, SurefootError

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to; it takes the place of `path` when the block ends well, and vanishes when not."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield beside
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise SurefootError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def read_text(kind: str, path: str | Path) -> str:
    """The content of a UTF-8 file, with or without a byte order mark; `kind` names it in the error."""
    if not Path(path).is_file():
        raise NotFound(kind, path)
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(kind, path, error) from error


def not_utf8(kind: str, path: str | Path, error: UnicodeDecodeError) -> SurefootError:
    return SurefootError(f"{kind} '{path}' must be text in UTF-8: {error.reason} at byte {error.start}.")


def read_json(kind: str, path: str | Path) -> Any:
    """The content of a JSON file; `kind` names it in the error when it is missing or broken."""
    text = read_text(kind, path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise SurefootError(f"{kind} '{path}' is not valid JSON: {error}.") from error


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with replacing(path) as beside:
        try:
            save_file(whole, beside, dict(metadata or {}))
        except SafetensorError as error:
            raise SurefootError(f"'{path}' cannot be written: {error}.") from error


def read_tensors(kind: str, path: str | Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not Path(path).is_file():
        raise NotFound(kind, path)
    try:
        return load_file(path)
    except SafetensorError as error:
        raise SurefootError(f"{kind} '{path}' is not a whole safetensors file: {error}.") from error
