"""One state dict in every form in which people leave their weights."""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from surefoot.files import write_tensors

State = dict[str, Tensor]


def prefixed(prefix: str, state: State) -> State:
    return OrderedDict((prefix + name, value) for name, value in state.items())


def noise(state: State) -> State:
    """Weights that must not be taken."""
    return OrderedDict((name, torch.full_like(value, 7)) for name, value in state.items())


def timm_file(state: State) -> dict[str, Any]:
    """What timm's training script writes."""
    arguments = Namespace(model="x", lr=0.1, opt_betas=None, img_size=32)
    rest = {"epoch": 3, "arch": "x", "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}, "version": 2, "metric": 0.5}
    return {**rest, "args": arguments, "state_dict": noise(state), "state_dict_ema": state}


def lightning_file(state: State) -> dict[str, Any]:
    """What Lightning writes, with a loss that has weights of its own."""
    inside = {**prefixed("model.", state), "criterion.weight": torch.ones(3)}
    rest = {
        "epoch": 1,
        "global_step": 9,
        "pytorch-lightning_version": "2.5.0",
        "loops": {"fit_loop": {}},
        "hyper_parameters": {},
    }
    return {**rest, "state_dict": inside, "optimizer_states": [{"state": {}}], "callbacks": {}}


def torchvision_file(state: State) -> dict[str, Any]:
    """What torchvision's reference script writes: an averaged model, which counts, in DistributedDataParallel's names."""
    averaged = {**prefixed("module.", state), "n_averaged": torch.tensor(5)}
    return {"model": noise(state), "model_ema": averaged, "args": Namespace(epochs=2), "epoch": 1}


PICKLES = {
    "bare": lambda state: state,
    "state_dict": lambda state: {"state_dict": state, "epoch": 3},
    "model": lambda state: {"model": state, "optimizer": {"state": {}}},
    "tutorial": lambda state: {
        "epoch": 3,
        "model_state_dict": state,
        "optimizer_state_dict": {"state": {}},
        "loss": torch.ones(()),
    },
    "model_state": lambda state: {"model_state": state},
    "net.": lambda state: {"state_dict": prefixed("net.", state)},
    "backbone.": lambda state: {"state_dict": prefixed("backbone.", state)},
    "net": lambda state: {"net": state, "acc": 94.1, "epoch": 2},
    "model_ema": lambda state: {"model": noise(state), "model_ema": state},
    "state_dict_ema": lambda state: {"state_dict_ema": state},
    "module.": lambda state: prefixed("module.", state),
    "model.": lambda state: prefixed("model.", state),
    "_orig_mod.": lambda state: prefixed("_orig_mod.", state),
    "module._orig_mod.": lambda state: {"state_dict": prefixed("module._orig_mod.", state)},
    "_orig_mod.module.": lambda state: {"net": prefixed("_orig_mod.module.", state)},
    "model.module.": lambda state: prefixed("model.module.", state),
    "timm": timm_file,
    "lightning": lightning_file,
    "torchvision": torchvision_file,
    "no counters": lambda state: {name: value for name, value in state.items() if "num_batches_tracked" not in name},
    "parameters": lambda state: {
        name: torch.nn.Parameter(value) if value.is_floating_point() else value for name, value in state.items()
    },
}
NAMES = (*PICKLES, "safetensors", "safetensors with another ending", "legacy pickle")


def write_format(name: str, state: State, folder: Path) -> str:
    """Write the state in the form called `name`, and give the path."""
    if name.startswith("safetensors"):
        path = folder / ("w.bin" if name != "safetensors" else "w.safetensors")
        write_tensors(path, state)
    else:
        path = folder / "w.pth"
        content = PICKLES.get(name, PICKLES["bare"])(state)
        torch.save(content, path, _use_new_zipfile_serialization=name != "legacy pickle")
    return str(path)
