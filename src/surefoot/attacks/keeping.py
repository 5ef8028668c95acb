"""Adversarial images on disk: a file's name says for what it was made, so that nothing is ever taken for something else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from ..files import read_tensors, write_tensors


def fingerprint(*things: Any) -> str:
    """A short name for tensors, modules (layers and weights), attacks (with their options) and plain values, in this order."""
    digest = blake2b(digest_size=8)
    for thing in things:
        if isinstance(thing, nn.Module):
            digest.update(f"{type(thing).__qualname__} {thing!r}".encode())
            for name, value in thing.state_dict().items():
                digest.update(name.encode())
                digest.update(content(value))
        else:
            digest.update(content(thing) if isinstance(thing, Tensor) else described(thing).encode())
    return digest.hexdigest()


def content(tensor: Tensor) -> bytes:
    """Shape, type and bytes."""
    flat = tensor.detach().cpu().contiguous().flatten()
    return f"{tuple(tensor.shape)} {tensor.dtype}".encode() + flat.view(torch.uint8).numpy().tobytes()


def described(thing: Any) -> str:
    """A text that is the same in another process."""
    if isinstance(thing, partial):
        return f"{described(thing.func)} {thing.args!r} {sorted(thing.keywords.items())!r}"
    if isinstance(thing, FunctionType):  # the name alone would be that of every lambda beside it
        held = [cell.cell_contents for cell in thing.__closure__ or () if cell.cell_contents is not thing]
        given = fingerprint(*held, thing.__defaults__, sorted((thing.__kwdefaults__ or {}).items()))
        return f"{thing.__module__}.{thing.__qualname__} {instructions(thing.__code__)} {given}"
    named = callable(thing) and hasattr(thing, "__qualname__")
    return f"{thing.__module__}.{thing.__qualname__}" if named else repr(thing)


def instructions(code: CodeType) -> str:
    """What a function does, with its constants and those of the functions inside it."""
    constants = [instructions(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


@dataclass(frozen=True)
class Keeper:
    """Reads and writes the tensors of numbered pieces of one piece of work; without a folder it keeps nothing."""

    folder: Path | None
    key: str

    def path(self, *numbers: int | str) -> Path:
        assert self.folder is not None
        return self.folder / ("-".join([self.key, *map(str, numbers)]) + ".safetensors")

    def read(self, *numbers: int | str) -> dict[str, Tensor] | None:
        """What was kept for these numbers, if anything."""
        if self.folder is None or not self.path(*numbers).is_file():
            return None
        return read_tensors("adversarial images", self.path(*numbers))

    def write(self, tensors: dict[str, Tensor], *numbers: int | str) -> None:
        if self.folder is not None:
            write_tensors(self.path(*numbers), tensors)
