"""What may be asked of models: stems, kinds of scores, devices, formats of export; known without torch."""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec

from ..errors import SurefootError, UnknownName

STEMS = ("auto", "imagenet", "enlarge")
RETURNS = ("logits", "probabilities")
SENDS = ("npy", "png")
SUFFIXES = {"onnx": ".onnx", "torch": ".pt2"}
QUANTISED = ("int8",)
NEEDED = ("onnx", "onnxscript", "onnxruntime")
DEVICES = (  # that torch has names for, whatever this machine has
    *("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "maia", "xla", "vulkan", "hip", "ipu", "mkldnn", "opengl", "opencl"),
    *("ideep", "ve", "fpga", "lazy", "meta", "privateuseone"),
)


def check_device(device: str) -> None:
    """Refuse what is no name of a device; whether this machine has it, torch knows. Its plugins bring names of their own."""
    if device.partition(":")[0] not in ("auto", *DEVICES) and not entry_points(group="torch.backends"):
        known = ", ".join(DEVICES[:6])
        raise SurefootError(f"device must be one that this machine has, got '{device}' (torch knows {known}, ...)")


def check_stem(stem: str | None) -> None:
    if stem is not None and stem not in STEMS:
        raise UnknownName("stem", stem, STEMS)


def check_returns(returns: str | None) -> None:
    if returns is not None and returns not in RETURNS:
        raise UnknownName("kind of scores", returns, RETURNS)


def check_sends(sends: str | None) -> None:
    if sends is not None and sends not in SENDS:
        raise UnknownName("way to send pictures", sends, SENDS)


def check_installed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise SurefootError(f"Export to ONNX needs {' and '.join(missing)}: pip install 'surefoot[onnx]'")
