"""Weights are data: safetensors, or a pickle that holds nothing but tensors."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from ..errors import NotFound, SurefootError
from ..files import read_tensors


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """The named tensors of a checkpoint file."""
    path = Path(path)
    if not path.is_file():
        raise NotFound("checkpoint", path)
    if path.suffix == ".safetensors":
        return read_tensors("checkpoint", path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pickle protocols that torch seldom sees
            state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise SurefootError(f"Checkpoint '{path}' is refused: it is not plain tensors ({reason})") from error
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise SurefootError(f"Checkpoint '{path}' must hold a state dict: names to tensors.")
    return state


def load_weights(module: nn.Module, weights: dict[str, Tensor], name: str) -> None:
    """Put weights into a module; every name and shape must fit."""
    own = module.state_dict()
    missing = [key for key in own if key not in weights]
    extra = [key for key in weights if key not in own]
    shapes = [key for key in own if key in weights and own[key].shape != weights[key].shape]
    wrong = [f"{k} is missing" for k in missing[:2]] + [f"{k} is not in the model" for k in extra[:2]]
    wrong += [f"{k} is {tuple(weights[k].shape)}, not {tuple(own[k].shape)}" for k in shapes[:2]]
    if wrong:
        count = len(missing) + len(extra) + len(shapes)
        raise SurefootError(f"{name} does not fit the model: {count} of its tensors differ ({'; '.join(wrong)}).")
    module.load_state_dict(weights)
