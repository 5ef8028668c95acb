"""Any module of one's own behind the face of `Classifier`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from torch import Tensor, nn

from ..errors import SurefootError
from ..types import Images, Logits
from .classifier import Classifier, per_channel

# Modules of any ending, for measurements that need logits alone.


logger = logging.getLogger("surefoot")


class Normalised(nn.Module):
    """A module behind its normalisation; it has no features and no head."""

    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, mean: float | Sequence[float], std: float | Sequence[float], channels: int) -> None:
        super().__init__()
        self.module, self.training = module, module.training
        self.register_buffer("mean", per_channel("mean", mean, channels))
        self.register_buffer("std", per_channel("std", std, channels))

    def forward(self, images: Images) -> Logits:
        logits: Logits = self.module((images - self.mean) / self.std)
        return logits


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


# Bring any module of your own behind the face of `Classifier`.


def adapt(
    module: nn.Module,
    mean: float | Sequence[float],
    std: float | Sequence[float],
    image_size: int | tuple[int, int],
    *,
    channels: int = 3,
) -> Classifier:
    """Wrap a module that takes images normalised by `mean` and `std` so that it takes pixels in [0, 1].

    A module that takes pixels in [0, 1] already has mean 0 and std 1. Its last linear layer is found by running it once.
    """
    return Classifier(module, mean, std, image_size, channels)
