"""Find the linear layer that a classifier ends in, and see what enters it, without changing the module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parameter import is_lazy

from ..errors import SurefootError
from ..types import Features, Images, Outputs


class NoHead(SurefootError):
    """A model that does not end in a linear layer."""


def find_head(module: nn.Module, images: Images) -> str:
    """The name of the linear layer whose output is the module's output, found by running the module once."""
    names: dict[nn.Module, str] = {layer: name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)}
    calls: list[tuple[str, Tensor, Tensor]] = []

    def record(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        calls.append((names[layer], inputs[0], output))

    hooks = [layer.register_forward_hook(record) for layer in names]
    try:
        with evaluating(module), torch.no_grad():
            logits = module(images)
    finally:
        for hook in hooks:
            hook.remove()
    kind = type(module).__name__
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        shown = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise SurefootError(f"{kind} must give a tensor of images x classes, got {shown}.")
    for name, features, output in reversed(calls):
        if features.ndim == 2 and output.shape == logits.shape and torch.equal(output.nan_to_num(), logits.nan_to_num()):
            return name
    raise NoHead(f"{kind} must end in one linear layer; no nn.Linear gives its output.")


@contextmanager
def modes_kept(module: nn.Module) -> Iterator[None]:
    """Every layer gets its own mode back after the block."""
    modes = {layer: layer.training for layer in module.modules()}
    try:
        yield
    finally:
        for layer, mode in modes.items():
            layer.training = mode


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; modes and buffers are as before afterwards, even after an error.

    The caller's `inference_mode` ends inside, where somebody may want a gradient; his `no_grad` does not.
    """
    known = [buffer for buffer in module.buffers() if not (is_lazy(buffer) or buffer.is_inference())]
    buffers = [(buffer, buffer._version, buffer.clone()) for buffer in known]
    gradient = torch.is_grad_enabled()
    with modes_kept(module), torch.inference_mode(False), torch.set_grad_enabled(gradient):
        module.eval()
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, version, kept in buffers:
                    if buffer._version != version:  # a layer that counts or averages in evaluation mode too
                        buffer.copy_(kept)


@contextmanager
def given_copies(module: nn.Module) -> Iterator[None]:
    """Inside the block the module gets a copy of what it is called with, with gradient: it may change that as it likes."""
    hook = module.register_forward_pre_hook(copy_inputs)
    try:
        yield
    finally:
        hook.remove()


def copy_inputs(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each.clone() if isinstance(each, Tensor) else each for each in inputs)


def observed(module: nn.Module, head: nn.Module, images: Images) -> Outputs:
    """The module's logits and the features that entered `head`, from one pass, with gradient."""
    if is_compiled(module):
        return _observed_compiled(module, head, images)
    seen: list[Features] = []
    hook = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        logits = module(images)
    finally:
        hook.remove()
    if not seen:
        raise SurefootError(f"The final layer of {type(module).__name__} was not called.")
    return Outputs(logits, seen[-1])


class Tap:
    """A hook that stays on a layer and keeps the last thing that entered it."""

    def __init__(self) -> None:
        self.seen: Features | None = None

    def __call__(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        self.seen = inputs[0]


_TAPS: WeakKeyDictionary[nn.Module, Tap] = WeakKeyDictionary()


def _observed_compiled(module: nn.Module, head: nn.Module, images: Images) -> Outputs:
    """As `observed`: compiled code knows only the hooks that were there when it was compiled, so the hook stays.

    A module that was compiled before it was first observed is compiled again, once.
    """
    if head not in _TAPS:
        _TAPS[head] = Tap()
        head.register_forward_pre_hook(_TAPS[head])
    tap = _TAPS[head]
    logits = module(images)
    if tap.seen is None:
        torch.compiler.reset()
        logits = module(images)
    if tap.seen is None:
        raise SurefootError(f"The final layer of {type(module).__name__} was not called.")
    features, tap.seen = tap.seen, None
    return Outputs(logits, features)


def is_compiled(module: nn.Module) -> bool:
    """Whether `torch.compile` or `module.compile()` stands between the caller and the module."""
    return any(hasattr(m, "_orig_mod") or getattr(m, "_compiled_call_impl", None) is not None for m in _wrappers(module))


def bare(module: nn.Module) -> nn.Module:
    """The module inside the wrappers of DDP and torch.compile."""
    return _wrappers(module)[-1]


def _wrappers(module: nn.Module) -> list[nn.Module]:
    """The module, what it wraps, and so on."""
    modules = [module]
    while True:
        inner = getattr(module, "_orig_mod", None) or (module.module if isinstance(module, DistributedDataParallel) else None)
        if inner is None:
            return modules
        modules.append(inner)
        module = inner


_HEADS: WeakKeyDictionary[nn.Module, tuple[str, list[type]]] = WeakKeyDictionary()


def head_of(module: nn.Module, images: Images) -> nn.Linear:
    """The final linear layer of any module, wrapped or not; found by running it on two images, once for the same layers."""
    inside = bare(module)
    layers = [type(layer) for layer in inside.modules()]
    if inside not in _HEADS or _HEADS[inside][1] != layers:
        _HEADS[inside] = find_head(inside, images[:2].detach()), layers
    head = inside.get_submodule(_HEADS[inside][0])
    assert isinstance(head, nn.Linear)
    return head
