"""A model for other programs: pixels in, probabilities out, normalisation and temperature inside, checked on real images."""

from __future__ import annotations

import copy
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError, UnknownName, require
from ..files import replacing, write_json
from ..types import Images, Logits, check_images
from .arguments import QUANTISED, SUFFIXES, check_installed
from .last_layer import evaluating

INPUT, OUTPUTS = "images", ("probabilities", "logits")
TOLERANCE = 1e-4  # of the largest logit
AGREEMENT = 0.9  # share of images that a quantised file must put into the model's class
CALIBRATED_AT_ONCE = 16
ROUNDING = 1e-6  # by how much logits may differ where an output of yes or no may turn
Run = Callable[[Images], tuple[Tensor, ...]]
More = Mapping[str, Callable[[Logits], Tensor]]


class Deployed(nn.Module):
    """What is written: the logits divided by a temperature, their softmax, and `more` of them."""

    def __init__(self, model: nn.Module, temperature: float = 1.0, more: More | None = None) -> None:
        super().__init__()
        self.model, self.temperature, self.more = model, temperature, dict(more or {})

    def forward(self, images: Images) -> tuple[Tensor, ...]:
        logits = self.model(images) / self.temperature
        return (logits.softmax(1), logits, *(output(logits) for output in self.more.values()))


@dataclass(frozen=True)
class Exported:
    """A written model and how far its logits are from the original's: at most `difference`, `relative` to the largest."""

    path: Path
    images: int
    difference: float
    relative: float
    agreement: float | None = None  # of a quantised file: the share of images whose class is the model's


def export(
    model: nn.Module,
    images: Images,
    path: str | Path,
    *,
    format: str = "onnx",
    temperature: float = 1.0,
    metadata: dict[str, Any] | None = None,
    more: More | None = None,
    quantise: str | None = None,
    calibration: Images | None = None,
) -> Exported:
    """Write a model as ONNX or as torch's ExportedProgram, for any number of images of this size.

    Input `images` (pixels in [0, 1]), outputs `probabilities` and `logits`, both after the temperature. What is to be written
    is first read back, and its answers on `images`, one alone and many at once, are compared with the model's; the file takes
    its place only if they agree. `metadata` goes into the file and, as JSON, beside it. `more` has further outputs by name, of
    yes or no, as functions of the logits: those of `Guarantees.outputs` are the prediction set and whether to answer alone.
    `quantise` "int8" makes weights and activations of an ONNX file 8-bit numbers, with ranges from the `calibration` images; it
    is refused if it gives fewer than nine in ten of `images` the model's class, and is best audited beside the model.

    >>> import torch
    >>> import surefoot as sf
    >>> model = sf.load_model("tiny-resnet", num_classes=4, image_size=32, seed=0)
    >>> done = sf.export(model, torch.rand(3, 3, 32, 32), "model.pt2", format="torch", temperature=1.5)
    >>> done.path.name, done.images
    ('model.pt2', 3)
    """
    if format not in SUFFIXES:
        raise UnknownName("format", format, SUFFIXES)
    path = Path(path)
    require(path.suffix == SUFFIXES[format], "output", f"a file *{SUFFIXES[format]}", str(path))
    require(0 < temperature < math.inf, "temperature", "positive and finite", temperature)
    check_images(images)
    require(len(images) >= 3, "images", "at least 3", len(images))
    if format == "onnx":
        check_installed()
    check_quantising(quantise, format, calibration, more)
    images = images.cpu().float()
    more = dict(more or {})
    deployed = standing_alone(Deployed(model, temperature, more))
    with evaluating(deployed), torch.no_grad():
        original = deployed(images)[1]
        if not torch.equal(original, deployed(images)[1]):
            raise SurefootError("The model draws at random when it predicts, so an export of it cannot be checked.")
        about = {**(metadata or {}), "temperature": temperature, "input": "pixels in [0, 1]", "outputs": [*OUTPUTS, *more]}
        about |= {"channels": images.shape[1], "image_size": list(images.shape[2:])}
        content = WRITERS[format](deployed, images[:3], about)
        if quantise is not None and calibration is not None:
            about |= {"quantised": f"{quantise}, static, ranges of {len(calibration)} images"}
            content = quantised(content, calibration.cpu().float(), about)
        run = READERS[format](content)
        difference, risen = largest_differences(run, images, original, more)
    largest = float(original.abs().max())
    relative = difference / largest if largest else difference
    agreement = None if quantise is None else float((run(images)[1].argmax(1) == original.argmax(1)).double().mean())
    if agreement is not None and not (agreement >= AGREEMENT and math.isfinite(relative)):
        raise SurefootError(
            f"The quantised file gives {agreement:.0%} of {len(images)} images the model's class, and {AGREEMENT:.0%} is the "
            "least: this model does not bear it, or the calibration images are unlike these."
        )
    if quantise is None and not (relative <= TOLERANCE and risen <= TOLERANCE):  # NaN is refused too
        raise SurefootError(
            f"The exported logits differ by {relative:.2g} of the largest, the probabilities by {risen:.2g}; "
            f"{TOLERANCE:g} is allowed."
        )
    with replacing(path) as beside:
        beside.write_bytes(content)
    checked = {"checked_on": len(images), "largest_difference": difference}
    checked |= {} if agreement is None else {"agreement": agreement}
    write_json(path.with_name(path.name + ".json"), {**about, **checked})
    return Exported(path, len(images), difference, relative, agreement)


def check_quantising(quantise: str | None, format: str, calibration: Images | None, more: More | None) -> None:
    if quantise is None:
        return
    if quantise not in QUANTISED:
        raise UnknownName("quantisation", quantise, QUANTISED)
    if format != "onnx":
        raise SurefootError(f"quantise is for ONNX, and the format is {format}.")
    if more:
        raise SurefootError("quantise would void the guarantees, which hold for the model as it was calibrated.")
    require(calibration is not None and len(calibration) > 0, "calibration", "images for the ranges of quantise", calibration)


def quantised(content: bytes, calibration: Images, about: dict[str, Any]) -> bytes:
    """The same with convolutions and linear layers in 8 bits, by onnxruntime's static quantisation."""
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Pictures(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
        def __init__(self) -> None:
            self.parts = iter(calibration.split(CALIBRATED_AT_ONCE))

        def get_next(self) -> dict[str, Any] | None:
            part = next(self.parts, None)
            return None if part is None else {INPUT: part.numpy()}

    with TemporaryDirectory() as folder:
        plain, prepared, small = (Path(folder) / f"{name}.onnx" for name in ("plain", "prepared", "small"))
        plain.write_bytes(content)
        try:
            quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)
            kinds: dict[str, Any] = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8, "per_channel": True}
            kinds["reduce_range"] = True  # 7 bits of weights: processors without VNNI saturate sums of full products
            layers = ["Conv", "Gemm", "MatMul"]
            quantize_static(str(prepared), str(small), Pictures(), QuantFormat.QDQ, op_types_to_quantize=layers, **kinds)
        except Exception as error:  # its errors have no common kind
            raise SurefootError(f"onnxruntime cannot quantise this model: {first_line(error)}.") from error
        proto = onnx.load(str(small))
    onnx.helper.set_model_props(proto, {name: json.dumps(value) for name, value in about.items()})
    whole: bytes = proto.SerializeToString()
    return whole


def standing_alone(module: nn.Module) -> nn.Module:
    """A copy on the CPU whose tensors own their memory and keep it in the usual order."""
    own = copy.deepcopy(module).cpu().float()
    for tensor in (*own.parameters(), *own.buffers()):
        tensor.data = tensor.data.clone(memory_format=torch.contiguous_format)
    return own.requires_grad_(False)


def largest_differences(run: Run, images: Images, original: Logits, more: More) -> tuple[float, float]:
    """Of the logits and of the probabilities of file and model: the first image alone, and all the others together."""
    parts = [run(images[:1]), run(images[1:])]
    probabilities, logits, *others = (torch.cat(side) for side in zip(*parts, strict=True))
    for (name, output), given in zip(more.items(), others, strict=True):
        open_ones = output(logits * (1 + ROUNDING)) != output(logits * (1 - ROUNDING))
        wrong = int(((given != output(logits)) & ~open_ones).sum())
        if wrong:
            raise SurefootError(f"The exported output '{name}' differs from the model's in {wrong} of {given.numel()} places.")
    return float((logits - original).abs().max()), float((probabilities - original.softmax(1)).abs().max())


def write_torch(module: nn.Module, example: Images, about: dict[str, Any]) -> bytes:
    """A `.pt2` archive; the metadata are its extra file `surefoot.json`."""
    batch = torch.export.Dim("batch", min=1)
    try:
        program = torch.export.export(module, (example,), dynamic_shapes={INPUT: {0: batch}})
    except Exception as error:  # torch raises whatever its parts raise
        raise SurefootError(f"torch.export cannot take this model: {first_line(error)}.") from error
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={"surefoot.json": json.dumps(about)})
    return file.getvalue()


def read_torch(content: bytes) -> Run:
    module: Run = torch.export.load(io.BytesIO(content)).module()
    return module


def write_onnx(module: nn.Module, example: Images, about: dict[str, Any]) -> bytes:
    """An ONNX model; the metadata are its `metadata_props`, each as JSON."""
    names: dict[str, Any] = {"input_names": [INPUT], "output_names": about["outputs"]}
    shapes = {INPUT: {0: "batch"}}
    try:
        program = torch.onnx.export(module, (example,), dynamo=True, dynamic_shapes=shapes, verbose=False, **names)
    except Exception as error:  # torch raises whatever its parts raise
        raise SurefootError(f"ONNX cannot take this model: {first_line(error)}.") from error
    assert program is not None
    program.model.metadata_props.update({name: json.dumps(value) for name, value in about.items()})
    content: bytes = program.model_proto.SerializeToString()
    return content


def read_onnx(content: bytes) -> Run:
    from onnxruntime import InferenceSession

    session = InferenceSession(content, providers=["CPUExecutionProvider"])

    def run(images: Images) -> tuple[Tensor, ...]:
        return tuple(torch.from_numpy(array) for array in session.run(None, {INPUT: images.numpy()}))

    return run


def first_line(error: BaseException) -> str:
    """What went wrong at the bottom of it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


WRITERS: dict[str, Callable[[nn.Module, Images, dict[str, Any]], bytes]] = {"onnx": write_onnx, "torch": write_torch}
READERS: dict[str, Callable[[bytes], Run]] = {"onnx": read_onnx, "torch": read_torch}
