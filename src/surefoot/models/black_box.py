"""Models that are no torch modules: a function of pixels with scores for classes, behind the face of a module.

They give no gradient and no features; an audit leaves out what needs those. What they take is stated (`found`), never assumed
in silence: the range and layout of pixels, the normalisation, and whether scores are logits or probabilities."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import SurefootError, UnknownName, require
from ..seeds import generator
from ..types import Images, Logits
from .arguments import check_returns
from .classifier import per_channel

Run = Callable[[Any], Any]  # an array or tensor of pictures to an array of scores
LAYOUTS = {  # how pictures are handed over
    "first": "count x channels x height x width",
    "last": "count x height x width x channels",
    "flat": "count x (channels x height x width)",
    "flat-last": "count x (height x width x channels)",
}
KINDS = ("torch", "numpy")
SUM = 1e-3  # by how much probabilities may miss 1
logger = logging.getLogger("surefoot")


class BlackBox(nn.Module):
    """Pixels in [0, 1] in, logits out; of probabilities the logarithms, whose softmax they are.

    `identity` tells the model from another one in files; `source` is None, since no recipe can build it.
    """

    mean: Tensor
    std: Tensor
    source = None

    def __init__(
        self,
        run: Run,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        image_size: tuple[int, int] | None = None,
        *,
        channels: int = 3,
        num_classes: int | None = None,
        returns: str | None = None,
        layout: str = "first",
        takes: str = "numpy",
        found: Sequence[str] = (),
        identity: str = "",
        class_names: Sequence[str] = (),
    ) -> None:
        super().__init__()
        for what, given, known in (("layout", layout, list(LAYOUTS)), ("kind of array", takes, KINDS)):
            if given not in known:
                raise UnknownName(what, given, known)
        check_returns(returns)
        self.run, self.layout, self.takes = run, layout, takes
        self.channels, self.image_size, self.num_classes = channels, image_size, num_classes
        self.identity, self.class_names = identity or identity_of(run), tuple(class_names)
        self.register_buffer("mean", per_channel("mean", mean, channels))
        self.register_buffer("std", per_channel("std", std, channels))
        self.returns, by = returns, "as given"
        if returns is None:
            self.returns, by = self.judged(), "judged by two pictures"
        plain = bool((self.mean == 0).all() and (self.std == 1).all())
        wanted = "pixels in [0, 1]" if plain else f"pixels normalised by {numbers(self.mean)} and {numbers(self.std)}"
        self.found = (*found, f"it takes {wanted}, {LAYOUTS[layout]}, and returns {self.returns} ({by})")
        self.eval()

    def judged(self) -> str:
        """Whether scores are probabilities: of two random pictures, all at least 0 and with sum 1."""
        if self.image_size is None:
            raise SurefootError(
                "image_size must be given, or returns='logits' or 'probabilities': the model does not say either."
            )
        pictures = torch.rand(2, self.channels, *self.image_size, generator=generator("example"))
        scores = self.scores(pictures)
        self.num_classes = scores.shape[1] if self.num_classes is None else self.num_classes
        sums = scores.sum(1)
        return "probabilities" if bool((scores >= 0).all() and ((sums - 1).abs() < SUM).all()) else "logits"

    def handed_over(self, images: Images) -> Any:
        pixels = (images.detach().float().cpu() - self.mean.cpu()) / self.std.cpu()
        pixels = pixels.permute(0, 2, 3, 1) if self.layout in ("last", "flat-last") else pixels
        pixels = pixels.flatten(1) if self.layout.startswith("flat") else pixels.contiguous()
        return pixels if self.takes == "torch" else pixels.numpy()

    def scores(self, images: Images) -> Tensor:
        given = self.run(self.handed_over(images))
        scores = given.detach().cpu() if isinstance(given, Tensor) else torch.from_numpy(np.array(given, np.float32))
        shaped = scores.ndim == 2 and len(scores) == len(images) and self.num_classes in (None, scores.shape[1])
        wanted = f"{len(images)} x {self.num_classes or 'classes'}"
        require(shaped, "The scores of a model", wanted, tuple(scores.shape))
        return scores.float()

    def forward(self, images: Images) -> Logits:
        scores = self.scores(images)
        if self.returns == "probabilities":
            off = ((scores.sum(1) - 1).abs() > SUM) | (scores < 0).any(1)
            if bool(off.any()):
                advice = "say returns='logits' (--returns logits) if they are logits"
                raise SurefootError(
                    f"Probabilities must be >= 0 and sum to 1; {int(off.sum())} of {len(scores)} do not: {advice}."
                )
            scores = scores.clamp_min(torch.finfo(torch.float32).tiny).log()
        return scores.to(images.device)


def numbers(values: Tensor) -> str:
    plain = [f"{float(v):g}" for v in values.flatten()]
    return plain[0] if len(set(plain)) == 1 else ", ".join(plain)


def identity_of(run: Any) -> str:
    """What tells a model in Python from another one: its state where it can be pickled, else its code or name."""
    owner = getattr(run, "__self__", None)
    code = getattr(run, "__code__", None)
    if owner is not None:
        try:
            return blake2b(pickle.dumps(owner), digest_size=8).hexdigest()
        except (pickle.PicklingError, TypeError, AttributeError):
            logger.info("%s cannot be told from another one of its kind.", type(owner).__name__)
    name = f"{getattr(run, '__module__', '')}.{getattr(run, '__qualname__', type(run).__name__)}"
    return name if code is None else f"{name} {blake2b(code.co_code, digest_size=8).hexdigest()}"


def in_pieces(run: Run, size: int) -> Run:
    """A model that takes batches of one size only: the last one is filled up with its last picture."""

    def pieces(pictures: Any) -> Any:
        out = []
        for start in range(0, len(pictures), size):
            part = pictures[start : start + size]
            missing = size - len(part)
            if isinstance(part, Tensor):
                out.append(
                    run(torch.cat([part, part[-1:].expand(missing, *part.shape[1:])]) if missing else part)[: size - missing]
                )
            else:
                whole = np.concatenate([part, np.repeat(part[-1:], missing, axis=0)]) if missing else part
                out.append(run(whole)[: size - missing])
        return torch.cat(out) if isinstance(out[0], Tensor) else np.concatenate(out)

    return pieces


def from_function(
    function: Any,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    image_size: tuple[int, int] | None,
    *,
    channels: int,
    num_classes: int | None,
    returns: str | None,
    layout: str | None,
    takes: str | None,
) -> BlackBox:
    """A function of pictures, or an object with `predict_proba`, which takes flat rows and gives probabilities."""
    options: dict[str, Any] = {"channels": channels, "num_classes": num_classes}
    if hasattr(function, "predict_proba"):
        classes = [str(name) for name in getattr(function, "classes_", ())]
        require(returns in (None, "probabilities"), "returns", "probabilities for predict_proba", returns)
        options |= {"returns": "probabilities", "layout": layout or "flat", "takes": takes or "numpy"}
        options |= {"num_classes": num_classes or len(classes) or None, "identity": identity_of(function.predict_proba)}
        found = (f"{type(function).__name__} with predict_proba",)
        return BlackBox(function.predict_proba, mean, std, image_size, found=found, **options)
    if not callable(function):
        raise SurefootError(f"A model must be a module, a function, or have predict_proba, got {type(function).__name__}.")
    options |= {"returns": returns, "layout": layout or "first", "takes": takes or "torch"}
    name = getattr(function, "__name__", type(function).__name__)
    return BlackBox(function, mean, std, image_size, found=(f"function {name}",), **options)
