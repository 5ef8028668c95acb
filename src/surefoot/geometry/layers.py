"""Features of any block of a model: which blocks there are, what they give, and projections to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..attacks.gradients import untouched
from ..corruptions.noise import add_gaussian_noise
from ..errors import SurefootError, UnknownName, require
from ..models.last_layer import bare, evaluating, head_of, is_compiled
from ..types import Features, Images, Labels
from .evaluation import forward_hooks, slices

MOST = 0.9  # of the weights: a part that holds more of them is looked into


def pooled(output: Tensor) -> Features:
    """Global average pooling: maps (images x channels x height x width) over their area, tokens (images x tokens x dimensions)
    over the tokens; vectors as they are."""
    if output.ndim == 4:
        return output.mean((2, 3))
    return output.mean(1) if output.ndim == 3 else output


def pooled_square(output: Tensor) -> Features:
    """As `pooled`, for square images: then maps with the channels last (Swin in timm) can be recognised by their shape."""
    last = output.ndim == 4 and output.shape[1] == output.shape[2] != output.shape[3]
    return output.mean((1, 2)) if last else pooled(output)


def block_features(
    model: nn.Module,
    images: Images,
    blocks: Sequence[str],
    pool: Callable[[Tensor], Features] = pooled,
    batch_size: int = 256,
    progress: bool = False,
) -> dict[str, Features]:
    """The pooled output of each named block, all from one pass (discriminative-noise 7.5).

    Names are those of `model.named_modules()`. A block that gives maps with the channels last (Swin in timm) needs another
    `pool`: `pooled_square`, or one of your own.
    """
    require(len(blocks) > 0, "blocks", "at least one name", list(blocks))
    require(len(images) > 0, "images", "at least one", len(images))
    module = bare(model)
    call = module.forward if is_compiled(module) else module  # compiled code does not see new hooks
    known = dict(module.named_modules())
    for name in blocks:
        if name not in known or not name:
            raise UnknownName("block", name, [block for block in known if block])
    layers = {known[name]: name for name in blocks}
    seen: dict[str, Tensor] = {}
    features: dict[str, list[Features]] = {name: [] for name in blocks}

    def record(layer: nn.Module, inputs: Any, output: Any) -> None:
        if not isinstance(output, Tensor):
            raise SurefootError(f"Block '{layers[layer]}' gives {type(output).__name__}, not a tensor; name one inside it.")
        seen[layers[layer]] = pool(output)

    with forward_hooks(layers, record), untouched(module), torch.no_grad():
        for part in slices(len(images), batch_size, progress, "layers"):
            seen.clear()
            call(images[part])
            for name, rows in features.items():
                if name not in seen:
                    raise SurefootError(f"Block '{name}' was not called in the forward pass.")
                rows.append(seen[name])
    return {name: torch.cat(rows) for name, rows in features.items()}


def main_blocks(model: nn.Module, images: Images, count: int = 4) -> tuple[str, ...]:
    """Names of at most `count` blocks (stages of a ResNet, blocks of a transformer) in the order of their calls, evenly chosen.

    The last is what gives the features that enter the head, where a module gives them. Names are those of `named_modules()`.
    """
    require(count >= 1, "count", "at least 1", count)
    module, few = bare(model), images[:2].detach()
    head = head_of(module, few)
    outputs, features = outputs_of(module, head, few)
    blocks = sorted(stages(module, head, outputs), key=list(outputs).index)
    if not blocks:
        raise SurefootError(f"{type(module).__name__} has no blocks with weights before its last layer.")
    last = next((name for name, output in reversed(outputs.items()) if output is features), None)
    if last is not None and last not in blocks and not pools_to(outputs[blocks[-1]], features):
        blocks.append(last)
    indices = torch.linspace(0, len(blocks) - 1, min(count, len(blocks))).round().long() if count > 1 else [-1]
    return tuple(blocks[int(index)] for index in indices)


def outputs_of(module: nn.Module, head: nn.Linear, images: Images) -> tuple[dict[str, Tensor], Tensor]:
    """The output of each module, by name in the order in which they ended, and what enters the head."""
    outputs: dict[str, Tensor] = {}
    features: list[Tensor] = []
    names = {layer: name for name, layer in module.named_modules() if name}

    def record(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if layer is head:
            features.append(inputs[0])
        elif isinstance(output, Tensor) and 2 <= output.ndim <= 4 and len(output) == len(images):
            outputs[names[layer]] = output

    with forward_hooks(names, record), evaluating(module), torch.no_grad():
        module(images)
    return outputs, features[-1] if features else images


def stages(module: nn.Module, head: nn.Linear, outputs: dict[str, Tensor]) -> list[str]:
    """The outermost level on which no part has nearly all of the weights."""
    known = dict(module.named_modules())

    def parts(name: str) -> list[str]:
        """The parts of a module that were called; those inside a list, and those beside the head, instead of it."""
        paths: list[str] = []
        for own, child in known[name].named_children():
            path = f"{name}.{own}" if name else own
            if child is head or not size(child):
                continue
            inside = path not in outputs or any(layer is head for layer in child.modules())
            paths.extend(parts(path) if inside else [path])
        return paths

    level = parts("")
    while True:
        blocks = [name for name in level if parts(name)]
        sizes = [size(known[name]) for name in blocks]
        if not blocks or (len(blocks) > 1 and max(sizes) < MOST * sum(sizes)):
            return blocks or level
        level = parts(blocks[sizes.index(max(sizes))])


def size(module: nn.Module) -> int:
    """The number of weights."""
    return sum(weight.numel() for weight in module.parameters())


def pools_to(output: Tensor, features: Tensor) -> bool:
    """Whether the features are the pooled output."""
    own = pooled_square(output)
    return own.shape == features.shape and torch.allclose(own, features, rtol=1e-3, atol=1e-5)


@dataclass(frozen=True)
class LayerProjection:
    """For each block (in the order of `blocks`) the coordinates of the clean and of the noisy images: blocks x images x 2."""

    blocks: tuple[str, ...]
    level: float
    clean: Tensor
    noisy: Tensor
    labels: Labels


def pca(features: Features) -> Tensor:
    """The two directions of largest variance: images x 2, in float64 on the CPU."""
    values = features.detach().double().cpu()
    values = values - values.mean(0)
    axes = torch.linalg.svd(values, full_matrices=False)[2][:2]
    largest = axes.abs().argmax(1, keepdim=True)  # the sign of an axis is free: its largest entry is positive
    coordinates = values @ (axes * axes.gather(1, largest).sign()).T
    return F.pad(coordinates, (0, 2 - coordinates.shape[1]))


def tsne(features: Features, seed: int = 0, perplexity: float = 30.0) -> Tensor:
    """Two dimensions by t-SNE (van der Maaten and Hinton 2008): images x 2, in float64 on the CPU.

    It keeps neighbours, not distances between clusters or their sizes. It starts from PCA, or at random from features of one
    dimension. The perplexity is at most a third of the images.
    """
    require(len(features) >= 4, "features", "of at least 4 images", len(features))
    from sklearn.manifold import TSNE

    values = features.detach().double().cpu().numpy()
    start = "pca" if values.shape[1] > 1 else "random"
    embedding = TSNE(2, perplexity=min(perplexity, (len(values) - 1) / 3), init=start, random_state=seed)
    return torch.as_tensor(embedding.fit_transform(values)).double()


def layer_projection(
    model: nn.Module,
    images: Images,
    labels: Labels,
    blocks: Sequence[str],
    level: float = 0.06,
    projection: Callable[[Features], Tensor] = tsne,
    seed: int = 0,
    batch_size: int = 256,
    progress: bool = False,
    pool: Callable[[Tensor], Features] = pooled,
    indices: Tensor | None = None,
) -> LayerProjection:
    """Pooled features of each block for clean images and for the same with Gaussian noise of this level (clipped to [0, 1]).

    Clean and noisy features of a block go through one projection together, so that their coordinates can be compared.
    """
    noisy = add_gaussian_noise(images, level, seed=seed, indices=indices)
    before = block_features(model, images, blocks, pool, batch_size, progress)
    after = block_features(model, noisy, blocks, pool, batch_size, progress)
    points = torch.stack([projection(torch.cat([before[name], after[name]])) for name in before])
    return LayerProjection(tuple(before), level, points[:, : len(images)], points[:, len(images) :], labels)
