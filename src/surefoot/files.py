"""Files are written beside their place and renamed into it, so a reader never sees half of one.

The folder that a user names is written to wherever it leads. Folders below it are not followed if they are links: somebody else
may have made them. A link in the place of a file is replaced, not written through.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import socket
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import NotFound, SurefootError, brief
from .limits import check_memory

if TYPE_CHECKING:
    from torch import Tensor


LOCK = ".lock"
PART = re.compile(r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{8})-(?P<process>[0-9]+)-[0-9a-f]{16}\.part")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to; it takes the place of `path` when the block ends well, and vanishes when not.

    Its name cannot be guessed, and it did not exist before. The file gets the permissions of any new file, whatever wrote it.
    """
    path = Path(path)
    beside = part_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent, path.name)
        made = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        permissions = os.fstat(made).st_mode & 0o777  # as the user's umask has it
        os.close(made)
        yield beside
        os.chmod(beside, permissions)
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise SurefootError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(NotADirectoryError):  # which was said above
            beside.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """A name beside `path` for what is being written: it says who writes it, and nobody can guess it."""
    return path.with_name(f".{path.name}.{this_host()}-{os.getpid()}-{secrets.token_hex(8)}.part")


def this_host() -> str:
    return blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove what processes of this machine that are gone left half-written: of one file, or of all in a folder."""
    for left in folder.iterdir() if folder.is_dir() else ():
        match = PART.fullmatch(left.name)
        if match and name in (None, match["name"]) and match["host"] == this_host() and not is_running(int(match["process"])):
            remove(left)


def is_running(process: int) -> bool:
    import psutil

    return bool(psutil.pid_exists(process))


def remove(path: Path) -> None:
    """Remove a file, a folder with all that is in it, or a link, whose target stays."""
    if path.is_dir() and not is_link(path):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_link(path: Path) -> bool:
    """Whether a path is a symbolic link, or a junction of Windows."""
    return path.is_symlink() or bool(getattr(os.path, "isjunction", lambda _: False)(path))


def inside(folder: str | Path, *names: str) -> Path:
    """A folder below one that the user named; refused if it, or one on the way, is a link to somewhere else."""
    path = Path(folder)
    for name in names:
        path = path / name
        if is_link(path):
            raise SurefootError(f"'{path}' is a link, and nothing is written or deleted through one: remove it.")
    return path


def check_folder(path: str | Path | None, argument: str = "output") -> None:
    """Refuse a place for a folder that is a file, or below one."""
    for place in () if path is None else (Path(path), *Path(path).parents):
        if place.exists() and not place.is_dir():
            raise SurefootError(f"{argument} must be a folder, and '{place}' is a file.")


@contextmanager
def only_writer(folder: str | Path) -> Iterator[None]:
    """This process alone writes to a folder, which is made if need be; a second one is refused.

    The lock goes with its process, however that ends. Folders that were made and stayed empty are removed again.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder)
    check_folder(folder)
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    path = inside(folder, LOCK)
    lock = FileLock(path)
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(blocking=False)
            while not path.exists():  # the one before us removed it between our opening and our locking it
                lock.release()
                lock.acquire(blocking=False)
        except Timeout as error:
            raise SurefootError(
                f"Another process is writing to '{folder}': wait until it has ended, or choose another output."
            ) from error
        except OSError as error:
            raise SurefootError(f"'{folder}' cannot be written: {error.strerror or error}.") from error
        yield
    finally:
        if lock.is_locked:
            with suppress(PermissionError):  # Windows removes no file that is open, and keeps it
                path.unlink(missing_ok=True)
            lock.release()
        for place in made:
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()


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
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise SurefootError(f"{kind} '{path}' is not valid JSON: {error}.") from error


def refuse_constant(name: str) -> None:
    """Python reads NaN and Infinity; JSON has none, and we write none."""
    raise ValueError(f"{name} is no number")


def read_arrays(path: str | Path) -> dict[str, Any]:
    """The arrays of an `.npz` by name; their headers are read first, and what would not fit into memory is refused."""
    import numpy as np

    try:
        check_memory(f"The arrays of '{path}'", claimed_bytes(path))
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}
    except SurefootError:
        raise
    except (ValueError, OSError, TypeError, EOFError, KeyError, NotImplementedError, RuntimeError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise SurefootError(f"'{path}' is not an .npz of plain arrays: {brief(reason)}.") from error
    except (zipfile.BadZipFile, zlib.error, SyntaxError, tokenize.TokenError) as error:  # as numpy and zipfile raise them
        raise SurefootError(f"'{path}' is not an .npz of plain arrays: {brief(str(error).splitlines()[0])}.") from error


def claimed_bytes(path: str | Path) -> int:
    """What the headers of an `.npz` claim that its arrays take, and what its entries claim to unpack to, the larger."""
    from numpy.lib import format as npy

    arrays = unpacked = 0
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            unpacked += entry.file_size
            if entry.filename.endswith(".npy"):
                with archive.open(entry) as file:
                    version = npy.read_magic(file)
                    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
                    shape, _, kind = header(file)
                arrays += math.prod(map(int, shape)) * kind.itemsize
    return max(arrays, unpacked)


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


def read_header(kind: str, path: str | Path) -> dict[str, Any]:
    """What we said of a safetensors file in its header; empty if another program wrote it."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise NotFound(kind, path)
    try:
        with safe_open(path, "pt") as file:
            about: Any = json.loads((file.metadata() or {}).get("surefoot", "{}"))
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise SurefootError(f"{kind} '{path}' is not a whole safetensors file: {error}.") from error
    return about if isinstance(about, dict) else {}
