"""Models in files, found by what they are: ONNX, TorchScript, torch's ExportedProgram."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import NotFound, SurefootError
from ..types import Images, Logits
from .black_box import BlackBox, in_pieces
from .classifier import per_channel

CHANNELS = (1, 3)


@dataclass(frozen=True)
class Described:
    """What a file says of itself: the size of its pictures where it is fixed, and what our own exports add."""

    kind: str
    image_size: tuple[int, int] | None = None
    channels: int | None = None
    layout: str = "first"
    batch: int | None = None
    about: dict[str, Any] = field(default_factory=dict)

    def preprocessing(self) -> dict[str, Any]:
        """Options of `load_data` for the pictures that it wants."""
        options = dict(self.about.get("preprocessing") or {})
        return options | ({} if self.image_size is None else {"image_size": self.image_size})

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(map(str, self.about.get("classes") or ()))


def kind_of(path: Path) -> str:
    """ "onnx", "torchscript" or "exported"; what else lies there is refused with the way to use it."""
    if not path.is_file():
        raise NotFound("model file", path)
    if path.suffix == ".onnx":
        return "onnx"
    if path.suffix == ".safetensors":
        raise SurefootError(f"'{path}' holds weights without a model: give --model NAME --checkpoint {path}.")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if any(name.endswith("/archive_format") or name == "archive_format" for name in names):
            return "exported"
        if any("/code/" in name for name in names) and any(name.endswith("constants.pkl") for name in names):
            return "torchscript"
        if any(name.endswith("data.pkl") for name in names):
            raise SurefootError(f"'{path}' holds weights without a model: give --model NAME --checkpoint {path}.")
    raise SurefootError(f"'{path}' is no model file: *.onnx, TorchScript and torch.export (.pt2) are read.")


def describe(path: str | Path) -> Described:
    """What a model file says of its pictures, without running it."""
    path = Path(path)
    kind = kind_of(path)
    if kind == "onnx":
        return describe_onnx(open_session(path))
    if kind == "exported":
        program, about = open_program(path)
        shape = next(iter(program.example_inputs[0])).shape if program.example_inputs else ()
        return described_shape(kind, list(shape), None, about)
    return Described(kind)


def described_shape(kind: str, shape: Sequence[Any], batch: int | None, about: dict[str, Any]) -> Described:
    """From the shape of the input: four numbers, or words where it is free."""
    if len(shape) != 4:
        raise SurefootError(f"The model's input must be a batch of pictures (4 dimensions), got {list(shape)}.")
    fixed = [size if isinstance(size, int) else None for size in shape]
    last = fixed[3] in CHANNELS and fixed[1] not in CHANNELS
    channels, sides = (fixed[3], fixed[1:3]) if last else (fixed[1], fixed[2:])
    size = None if None in sides else (int(sides[0] or 0), int(sides[1] or 0))
    return Described(kind, size, channels, "last" if last else "first", batch, about)


def open_session(path: Path) -> Any:
    try:
        from onnxruntime import InferenceSession
    except ImportError as error:
        raise SurefootError(f"'{path}' needs onnxruntime: pip install 'surefoot[onnx]'.") from error
    try:
        return InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common kind
        raise SurefootError(f"'{path}' is no ONNX model that onnxruntime can read: {str(error).splitlines()[0]}.") from error


def describe_onnx(session: Any) -> Described:
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise SurefootError(f"The model must have one input, got {', '.join(each.name for each in inputs)}.")
    shape = inputs[0].shape
    about = {key: loaded(value) for key, value in session.get_modelmeta().custom_metadata_map.items()}
    return described_shape("onnx", shape, shape[0] if isinstance(shape[0], int) else None, about)


def loaded(value: str) -> Any:
    """Metadata as JSON, where it is any."""
    try:
        return json.loads(value)
    except ValueError:
        return value


class OnnxRun:
    """A session of onnxruntime, opened where it is used, so that it can go to another process."""

    def __init__(self, path: Path) -> None:
        self.path, self.session = path, open_session(path)
        given, outputs = self.session.get_inputs()[0], self.session.get_outputs()
        self.name, self.type = given.name, given.type
        flat = [each.name for each in outputs if each.shape is None or len(each.shape) == 2]
        if not flat:
            raise SurefootError(f"'{path}' gives no images x classes, but {', '.join(each.name for each in outputs)}.")
        self.output = "logits" if "logits" in flat else flat[0]
        self.others = [each.name for each in outputs if each.name != self.output]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "session": None}

    def __call__(self, pictures: np.ndarray[Any, Any]) -> Any:
        if self.session is None:
            self.session = open_session(self.path)
        if self.type == "tensor(uint8)":
            pictures = np.clip(np.rint(pictures * 255), 0, 255).astype(np.uint8)
        elif self.type == "tensor(float16)":
            pictures = pictures.astype(np.float16)
        elif self.type == "tensor(double)":
            pictures = pictures.astype(np.float64)
        return self.session.run([self.output], {self.name: pictures})[0].astype(np.float32)


class FromFile(nn.Module):
    """TorchScript, or a program of torch.export, behind its normalisation: logits with their gradient, no features."""

    mean: Tensor
    std: Tensor
    source = None

    def __init__(self, inner: Any, mean: Any, std: Any, channels: int, identity: str) -> None:
        super().__init__()
        self.inner = [inner]  # no submodule: a program of torch.export refuses train and eval
        self.returns, self.identity, self.channels = "logits", identity, channels
        self.found: tuple[str, ...] = ()
        self.register_buffer("mean", per_channel("mean", mean, channels))
        self.register_buffer("std", per_channel("std", std, channels))
        self.class_names: tuple[str, ...] = ()
        self.num_classes = 0
        self.image_size: tuple[int, int] | None = None
        self.eval()

    def forward(self, images: Images) -> Logits:
        given = self.inner[0]((images.cpu() - self.mean.cpu()) / self.std.cpu())
        scores: Tensor = scores_of(given)
        if self.returns == "probabilities":
            scores = scores.clamp_min(torch.finfo(torch.float32).tiny).log()
        return scores.to(images.device)


def scores_of(given: Any) -> Tensor:
    """The scores among what a file gives: our exports give probabilities and then logits."""
    if isinstance(given, dict):
        given = given.get("logits", next(iter(given.values())))
    if isinstance(given, list | tuple):
        flat = [each for each in given if isinstance(each, Tensor) and each.ndim == 2]
        given = flat[1] if len(flat) > 1 and flat[0].shape == flat[1].shape else flat[0] if flat else given
    if not isinstance(given, Tensor) or given.ndim != 2:
        shown = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
        raise SurefootError(f"The model must give images x classes, got {shown}.")
    return given.float()


def open_script(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's, that TorchScript is of the past
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return torch.jit.load(str(path), map_location="cpu").eval()
        except RuntimeError as error:
            raise SurefootError(f"'{path}' cannot be read as TorchScript: {str(error).splitlines()[0]}.") from error


def open_program(path: Path) -> tuple[Any, dict[str, Any]]:
    extra = {"surefoot.json": ""}
    try:
        program = torch.export.load(str(path), extra_files=extra)
    except Exception as error:  # torch raises whatever its parts raise
        raise SurefootError(
            f"'{path}' cannot be read by torch.export: {(str(error) or repr(error)).splitlines()[0]}."
        ) from error
    about = extra["surefoot.json"]
    return program, json.loads(about) if about else {}


def load_file(
    path: str | Path,
    *,
    image_size: tuple[int, int] | None = None,
    channels: int | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    returns: str | None = None,
) -> BlackBox | FromFile:
    """The model in a file; what it does not say must be given, and what was found is in `found`."""
    path = Path(path)
    known = describe(path)
    size, channels = known.image_size or image_size, known.channels or channels or 3
    if size is None:
        raise SurefootError(f"image_size must be given: '{path}' does not say it.")
    mean, std = 0.0 if mean is None else mean, 1.0 if std is None else std
    identity = blake2b(path.read_bytes(), digest_size=8).hexdigest()
    if known.kind == "onnx":
        run = OnnxRun(path)
        said = [f"ONNX, input '{run.name}' of {run.type}, output '{run.output}'"]
        said += [f"its outputs {', '.join(run.others)} are not used"] if run.others else []
        whole = run if known.batch is None else in_pieces(run, known.batch)
        options: dict[str, Any] = {"channels": channels, "returns": returns, "layout": known.layout, "identity": identity}
        return BlackBox(whole, mean, std, size, found=said, class_names=known.class_names, **options)
    inner = open_script(path) if known.kind == "torchscript" else open_program(path)[0].module()
    title = "TorchScript" if known.kind == "torchscript" else "a program of torch.export"
    model = FromFile(fitting(inner, channels, size), mean, std, channels, identity)
    with torch.no_grad():
        scores = run_once(path, model, torch.rand(2, channels, *size, generator=torch.Generator().manual_seed(0)))
    judged = bool((scores >= 0).all() and ((scores.sum(1) - 1).abs() < 1e-3).all())
    model.returns = returns or ("probabilities" if judged else "logits")
    by = "as given" if returns else "judged by two pictures"
    model.found = (f"{title}, pixels normalised by {mean} and {std}, channels first; it returns {model.returns} ({by})",)
    model.image_size, model.num_classes, model.class_names = size, scores.shape[1], known.class_names
    return model


def run_once(path: Path, model: nn.Module, pictures: Images) -> Tensor:
    try:
        scores: Tensor = model(pictures)
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        if isinstance(error, SurefootError):
            raise
        shape, reason = " x ".join(map(str, pictures.shape[1:])), (str(error) or type(error).__name__).strip().splitlines()[-1]
        raise SurefootError(f"'{path}' cannot take pictures of {shape} ({reason.rstrip('.')}).") from error
    return scores


def fitting(inner: Any, channels: int, size: tuple[int, int]) -> Any:
    """The program itself if it takes one picture and three; else in pieces of the batch that it was exported with."""
    pictures = torch.rand(3, channels, *size)
    with torch.no_grad():
        for count in (1, 3):
            try:
                inner(pictures[:count])
            except (RuntimeError, AssertionError, ValueError):
                break
        else:
            return inner
        for batch in (1, 2, 4, 8, 16, 32, 64, 128):
            try:
                inner(pictures[:1].expand(batch, -1, -1, -1).contiguous())
            except (RuntimeError, AssertionError, ValueError):
                continue
            return in_pieces(lambda part: scores_of(inner(part)), batch)
    return inner  # it says itself what it cannot take
