"""Adversarial images on disk: a file's name says for what it was made, so that nothing is ever taken for something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType, MethodType, NoneType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import SurefootError
from ..files import read_tensors, write_tensors


def fingerprint(*things: Any) -> str:
    """A short name for tensors, modules (layers, weights, plain attributes), attacks with their options and plain values."""
    digest = blake2b(digest_size=8)
    for thing in things:
        digest.update(content(thing) if isinstance(thing, Tensor) else described(thing).encode())
    return digest.hexdigest()


def content(tensor: Tensor) -> bytes:
    """Shape, type and bytes."""
    flat = tensor.detach().cpu().contiguous().flatten()
    return f"{tuple(tensor.shape)} {tensor.dtype}".encode() + flat.view(torch.uint8).numpy().tobytes()


def described(thing: Any, inside: tuple[Any, ...] = ()) -> str:
    """A text that is the same in another process; `inside` are the objects that it is part of."""
    if any(thing is other for other in inside):
        return f"level {[thing is other for other in inside].index(True)}"
    inside = (*inside, thing)

    def all_of(*things: Any) -> str:
        return ", ".join(described(each, inside) for each in things)

    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
    if isinstance(thing, Tensor):
        return fingerprint(thing)
    if isinstance(thing, np.ndarray):
        return f"{thing.shape} {thing.dtype} {thing.tobytes().hex()}"
    if isinstance(thing, nn.Module):
        plain = [(name, type(each).__qualname__, plain_attributes(each)) for name, each in thing.named_modules()]
        return f"{kind} {thing!r} {plain} {all_of(thing.state_dict())}"
    if isinstance(thing, Mapping):
        return f"{kind} {all_of(*(part for pair in thing.items() for part in pair))}"
    if isinstance(thing, list | tuple):
        return f"{kind} {all_of(*thing)}"
    if isinstance(thing, partial):
        return f"{kind} {all_of(thing.func, thing.args, sorted(thing.keywords.items()))}"
    if isinstance(thing, MethodType):
        return f"{kind} {all_of(thing.__func__, thing.__self__)}"
    if isinstance(thing, FunctionType):  # the name alone would be that of every lambda beside it
        contents = [cell.cell_contents for cell in thing.__closure__ or ()]
        given = all_of(contents, thing.__defaults__, sorted((thing.__kwdefaults__ or {}).items()))
        return f"{thing.__module__}.{thing.__qualname__} {instructions(thing.__code__)} {given}"
    if callable(thing) and hasattr(thing, "__qualname__"):
        return f"{thing.__module__}.{thing.__qualname__}"
    text = repr(thing)
    if is_dataclass(thing) or " at 0x" in text:  # a text that abbreviates, or an address
        try:
            return f"{kind} {all_of(thing.__reduce_ex__(2)[1:3])}"
        except TypeError as error:
            raise SurefootError(f"A {kind} cannot be told from another one: nothing can be kept for it in a folder.") from error
    return text


def plain_attributes(layer: nn.Module) -> list[tuple[str, str]]:
    """The numbers, words and tensors that a layer has beside its weights, and that its text may not show."""
    simple = (bool, int, float, str, NoneType, Tensor)
    own = ((name, value) for name, value in vars(layer).items() if not name.startswith("_") and name != "training")
    return [
        (name, described(value))
        for name, value in own
        if isinstance(value, simple) or (isinstance(value, list | tuple) and all(isinstance(each, simple) for each in value))
    ]


def instructions(code: CodeType) -> str:
    """What a function does, with its constants and those of the functions inside it."""
    constants = [instructions(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


@dataclass(frozen=True)
class Cache:
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
