"""How often a model is right about an image when noise is added to it again and again."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..attacks.gradients import untouched
from ..corruptions.levels import add_gaussian_noise, add_uniform_noise
from ..errors import UnknownName, require
from ..seeds import derive
from ..types import Images, Labels, finite_logits
from .batching import slices

NOISES = {"gaussian": add_gaussian_noise, "uniform": add_uniform_noise}


def noisy_correct(
    model: nn.Module,
    images: Images,
    labels: Labels,
    level: float = 0.06,
    noise: str = "gaussian",
    draws: int = 10,
    seed: int = 0,
    batch_size: int = 256,
    progress: bool = False,
) -> Tensor:
    """count(i): in how many of `draws` noisy copies each image gets its label (discriminative-noise 7.3).

    `level` is the deviation of "gaussian" and the amplitude of "uniform" noise, in pixel units; copies are clipped to [0, 1].
    An image's noise depends on `seed` and its place alone, not on the batch.
    """
    if noise not in NOISES:
        raise UnknownName("noise", noise, NOISES)
    require(draws >= 1, "draws", "at least 1", draws)
    counts = torch.zeros(len(images), dtype=torch.long, device=images.device)
    with untouched(model), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "noise"):
            places = torch.arange(part.start, part.stop)
            for number in range(draws):
                copies = NOISES[noise](images[part], level, seed=derive(seed, number, "noisy answers"), indices=places)
                counts[part] += finite_logits(model(copies)).argmax(1) == labels[part]
    return counts
