"""Any model of one's own behind the face of `Classifier`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import SurefootError, require
from ..types import Images, Logits
from .arguments import check_returns
from .black_box import from_function
from .classifier import Classifier, per_channel

# Modules of any ending, for measurements that need logits alone.


logger = logging.getLogger("surefoot")


class Normalised(nn.Module):
    """A module behind its normalisation; it has no features and no head."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        module: nn.Module,
        mean: float | Sequence[float],
        std: float | Sequence[float],
        channels: int,
        returns: str = "logits",
    ) -> None:
        super().__init__()
        self.module, self.training, self.returns = module, module.training, returns
        self.register_buffer("mean", per_channel("mean", mean, channels))
        self.register_buffer("std", per_channel("std", std, channels))

    def forward(self, images: Images) -> Logits:
        scores: Logits = self.module((images - self.mean) / self.std)
        if self.returns == "logits":
            return scores
        return scores.clamp_min(torch.finfo(scores.dtype).tiny).log()


def adapt_any(
    module: nn.Module,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    image_size: int | tuple[int, int],
    *,
    channels: int = 3,
) -> nn.Module:
    """A `Classifier` where the module ends in one linear layer; else one that gives logits only, and a line in the log.

    A module that cannot take images of this size is refused.
    """
    try:
        return Classifier(module, mean, std, image_size, channels)
    except SurefootError as error:
        logger.warning("%s Measurements of its features are left out.", error)
        return Normalised(module, mean, std, channels)
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:  # whatever the module's code raises
        height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        kind = type(module).__name__
        raise SurefootError(f"{kind} cannot take images of {channels} x {height} x {width}: {reason}.") from error


# Bring any model of your own behind the face of `Classifier`.


def adapt(
    model: Any,
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    image_size: int | tuple[int, int] | None = None,
    *,
    channels: int = 3,
    num_classes: int | None = None,
    returns: str | None = None,
    layout: str | None = None,
    takes: str | None = None,
) -> Any:
    """Wrap a model that takes images normalised by `mean` and `std` so that it takes pixels in [0, 1] and gives logits.

    A module becomes a `Classifier`: its last linear layer is found by running it once on images of `image_size`. Anything else
    gives logits alone: a function of a batch of pictures (`returns` says "logits" or "probabilities"; with `num_classes` its
    answers are checked), or an object with `predict_proba`, which takes flat rows. `layout` is "first" or "last", where the
    channels stand, or "flat" or "flat-last"; `takes` is "torch" or "numpy". Probabilities are scored as they are, and
    temperatures act on their logarithms.

    Examples:
        >>> import torch
        >>> import surefoot as sf
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
        >>> model = sf.adapt(net, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25), image_size=32)
        >>> model(torch.rand(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """
    size = (image_size, image_size) if isinstance(image_size, int) else image_size
    options: dict[str, Any] = {"channels": channels, "num_classes": num_classes, "layout": layout, "takes": takes}
    if isinstance(model, nn.Module):
        given = next((name for name in ("num_classes", "layout", "takes") if options[name] is not None), None)
        require(given is None, str(given), "left out for a module", options.get(str(given)))
        if size is None:
            raise SurefootError("image_size must be given for a module, which is run once to find its last layer.")
        check_returns(returns)
        if returns in (None, "logits"):
            return Classifier(model, mean, std, size, channels)
        return Normalised(model, mean, std, channels, returns="probabilities")
    if returns is None and not hasattr(model, "predict_proba"):
        raise SurefootError("returns must be given for a function: 'logits' or 'probabilities'.")
    return from_function(model, mean, std, size, returns=returns, **options)


def adapt_found(
    given: Any,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    image_size: tuple[int, int],
    channels: int,
    returns: str | None,
) -> nn.Module:
    """What an import gave, by what it is: a module, an object with `predict_proba`, or a function of pictures."""
    if isinstance(given, nn.Module):
        if returns == "probabilities":
            return Normalised(given, mean, std, channels, returns=returns)
        return adapt_any(given, mean, std, image_size, channels=channels)
    options: dict[str, Any] = {"channels": channels, "num_classes": None, "layout": None, "takes": None}
    return from_function(given, mean, std, image_size, returns=returns, **options)
