"""How fast the loss gradient turns around an image (discriminative Eq. 21), and accuracy under noise by that curvature."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..attacks.gradients import input_gradient, untouched
from ..errors import SurefootError, UnknownName, require
from ..models.classifier import Classifier
from ..seeds import check_indices, draw
from ..types import Images, Labels
from .evaluation import base_seed, deterministic, gaussian, loss_gradient, losses, prepared_batch, slices
from .heads import mean_and_error, pearson
from .hessian import HessianProducts

UNITS = ("pixels", "normalised")


@dataclass(frozen=True)
class Curvature:
    """For each image: `values` is the mean over the draws, `errors` its standard error (NaN for one draw)."""

    values: Tensor
    errors: Tensor
    draws: int
    step: float  # 0 for the Hessian's own


def input_curvature(
    model: nn.Module,
    images: Images,
    labels: Labels,
    draws: int = 20,
    step: float = 0.01,
    generator: torch.Generator | None = None,
    *,
    units: str = "pixels",
    indices: Tensor | None = None,
    batch_size: int = 256,
    progress: bool = False,
) -> Curvature:
    """Mean over draws of ||grad l(x + t e) - grad l(x)||^2 / t^2, e ~ N(0, I) not normalised (discriminative Eq. 21).

    For a smooth net and a small step this is the sum of the squared Hessian eigenvalues. With ReLU a step of 0.01 crosses
    kinks, which dominate: it then tells how the slope changes over that distance, unlike `hessian_curvature`.
    Step and gradient are in pixels, or in the "normalised" `units` (x - mean) / std, as the authors' code has them: with one
    std for all channels the figure is std^4 of that in pixels, at a step of std times as many pixels.
    """
    require(draws >= 1, "draws", "at least 1", draws)
    require(step > 0, "step", "positive", step)
    scale = unit_of(model, units, images)
    (images, labels), seed = prepared_batch(model, images, labels, half=False), base_seed(generator)
    indices = check_indices(indices, len(images))
    batches = []
    with deterministic(model):
        for part in slices(len(images), batch_size, progress, "curvature"):
            points, right = images[part], labels[part]
            clean = loss_gradient(model, points, right)
            rows = []
            for draw in range(draws):
                moved = gaussian(points, indices[part], draw, seed).mul_(step * scale).add_(points)
                rows.append(squares(loss_gradient(model, moved, right).sub_(clean).mul_(scale)) / step**2)
            batches.append(torch.stack(rows))
    return Curvature(*mean_and_error(batches), draws, step)


def unit_of(model: nn.Module, units: str, images: Images) -> Tensor:
    """How many pixels a unit is, for each channel."""
    if units not in UNITS:
        raise UnknownName("units", units, UNITS)
    if units == "pixels":
        return images.new_ones(())
    if not isinstance(model, Classifier):
        raise SurefootError("units='normalised' needs a model with mean and std: sf.adapt(module, mean=..., std=...).")
    return model.std.to(images)


def hessian_curvature(
    model: nn.Module,
    images: Images,
    labels: Labels,
    draws: int = 20,
    generator: torch.Generator | None = None,
    *,
    indices: Tensor | None = None,
    batch_size: int = 64,
    progress: bool = False,
) -> Curvature:
    """Mean over draws of ||H e||^2, e ~ N(0, I): the sum of squared Hessian eigenvalues by exact Hessian-vector products.

    Needs a model that can be differentiated twice. For a ReLU net H is that of the linear piece the image lies in.
    """
    require(draws >= 1, "draws", "at least 1", draws)
    (images, labels), seed = prepared_batch(model, images, labels, half=False), base_seed(generator)
    indices = check_indices(indices, len(images))
    batches = []
    with deterministic(model):
        for part in slices(len(images), batch_size, progress, "Hessian"):
            product = HessianProducts(model, images[part], labels[part])
            rows = [squares(product(gaussian(images[part], indices[part], draw, seed))) for draw in range(draws)]
            batches.append(torch.stack(rows))
    return Curvature(*mean_and_error(batches), draws, 0.0)


def squares(points: Tensor) -> Tensor:
    """The squared norm of everything that belongs to an image."""
    return points.flatten(1).square().sum(1)


@dataclass(frozen=True)
class AccuracyByCurvature:
    """Accuracy under noise (`values`) of the `shares` of images with the lowest curvature, `counts` of them (Fig. 8)."""

    shares: Tensor
    counts: Tensor
    values: Tensor


@dataclass(frozen=True)
class CurvatureByCount:
    """Mean curvature (`values`) of the images with 0, 1, ... right predictions out of `draws`, NaN without any (Fig. 9).

    `correlation` is Pearson r over the groups, as the paper's, NaN for two groups, which always lie on a line;
    `image_correlation` over the images, which groups of very different sizes do not flatter.
    """

    draws: int
    values: Tensor
    counts: Tensor
    correlation: float
    image_correlation: float


@dataclass(frozen=True)
class CurvatureSpread:
    """Minimum, quartiles and maximum of the lowest `share` of curvatures of each model: names x 5 (Fig. 10)."""

    names: tuple[str, ...]
    share: float
    values: Tensor


def accuracy_by_curvature(
    curvature: Tensor, correct: Tensor, shares: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
) -> AccuracyByCurvature:
    """acc(D(p)): mean of `correct` (1 or 0, or the share of right draws) over the ceil(p n) images of lowest curvature.

    The paper takes curvatures below the p-quantile, which is the same up to one image where no two are equal.
    """
    check_pair(curvature, correct, "correct")
    require(all(0 < share <= 1 for share in shares), "shares", "above 0 and at most 1", list(shares))
    ordered = correct.double()[curvature.argsort(stable=True)].cumsum(0)
    counts = torch.tensor([math.ceil(round(share * len(curvature), 9)) for share in shares], device=curvature.device)
    return AccuracyByCurvature(torch.tensor(shares, dtype=torch.float64), counts, ordered[counts - 1] / counts)


def curvature_by_count(curvature: Tensor, counts: Tensor, draws: int = 10) -> CurvatureByCount:
    """Mean curvature by the number of right predictions, as `noisy_correct` counts them."""
    check_pair(curvature, counts, "counts")
    inside = bool((counts >= 0).all() and (counts <= draws).all()) and not counts.is_floating_point()
    require(inside, "counts", f"whole numbers from 0 to {draws}", counts.dtype)
    curvature = curvature.double()
    sizes = torch.bincount(counts, minlength=draws + 1)
    means = torch.bincount(counts, weights=curvature, minlength=draws + 1) / sizes
    steps = torch.arange(draws + 1, dtype=torch.float64, device=curvature.device)
    correlation = pearson(steps, means) if int((sizes > 0).sum()) > 2 else math.nan
    return CurvatureByCount(draws, means, sizes, correlation, pearson(counts.double(), curvature))


def curvature_spread(curvatures: Mapping[str, Tensor], share: float = 0.9) -> CurvatureSpread:
    """The box plot of the ceil(share n) lowest curvatures of each model."""
    require(0 < share <= 1, "share", "above 0 and at most 1", share)
    require(len(curvatures) > 0, "curvatures", "of at least one model", 0)
    quarters = torch.linspace(0, 1, 5, dtype=torch.float64)
    rows = []
    for name, values in curvatures.items():
        require(values.ndim == 1 and len(values) > 0, f"curvatures['{name}']", "one number for each image", tuple(values.shape))
        lowest = values.detach().double().cpu().sort().values[: math.ceil(round(share * len(values), 9))]
        rows.append(lowest.quantile(quarters))
    return CurvatureSpread(tuple(curvatures), share, torch.stack(rows))


def check_pair(curvature: Tensor, other: Tensor, argument: str) -> None:
    """One number of each kind for each image."""
    require(curvature.ndim == 1 and len(curvature) > 0, "curvature", "one number for each image", tuple(curvature.shape))
    require(other.shape == curvature.shape, argument, f"one for each of {len(curvature)} images", tuple(other.shape))


# The loss around an image, along its gradient and across it (discriminative-noise Fig. 11).


@dataclass(frozen=True)
class LossLandscape:
    """Cross-entropy at x + a g + b o, g the unit gradient of the loss and o a random unit direction orthogonal to it.

    `offsets` are the values of a and of b, L2 lengths in pixel units; `loss` is images x a x b; `gradient_norm` one number for
    each image. The paper draws the negative loss.
    """

    offsets: Tensor
    loss: Tensor
    gradient_norm: Tensor


def loss_landscape(
    model: nn.Module,
    images: Images,
    labels: Labels,
    reach: float = 1.0,
    resolution: int = 25,
    generator: torch.Generator | None = None,
    batch_size: int = 256,
    progress: bool = False,
    *,
    indices: Tensor | None = None,
) -> LossLandscape:
    """The loss on a grid of `resolution` x `resolution` points around each image, not clipped to [0, 1].

    `reach` and `resolution` are ours: the paper gives none. Where the gradient is 0, its direction is 0 as well. With `indices`
    the other direction belongs to the image; without, to its index in the batch.
    """
    require(reach > 0, "reach", "positive", reach)
    require(
        resolution >= 3 and resolution % 2 == 1, "resolution", "odd and at least 3, with the image in the middle", resolution
    )
    images, labels = prepared_batch(model, images, labels)
    along, across, norms = directions(model, images, labels, generator, batch_size, indices)
    offsets = torch.linspace(-reach, reach, resolution, dtype=images.dtype, device=images.device)
    shifts = torch.cartesian_prod(offsets, offsets)
    cells = len(shifts)
    loss = []
    with untouched(model), torch.no_grad():
        for part in slices(len(images) * cells, batch_size, progress, "landscape"):
            points = torch.arange(part.start, part.stop, device=images.device)
            image, cell = points // cells, points % cells
            a, b = (shifts[cell, k].view(-1, 1, 1, 1) for k in (0, 1))
            logits = model(images[image] + a * along[image] + b * across[image])
            loss.append(F.cross_entropy(logits, labels[image], reduction="none"))
    return LossLandscape(offsets, torch.cat(loss).view(len(images), resolution, resolution), norms)


def directions(
    model: nn.Module,
    images: Images,
    labels: Labels,
    generator: torch.Generator | None,
    batch_size: int,
    indices: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The unit gradient at each image, a random unit direction orthogonal to it, and the norm of the gradient."""
    gradients = []
    with untouched(model):
        for part in slices(len(images), batch_size, False, "gradients"):
            gradients.append(input_gradient(model, images[part], losses(labels[part]))[0])
    gradient = torch.cat(gradients).flatten(1)
    tiny = torch.finfo(gradient.dtype).tiny
    norms = torch.linalg.vector_norm(gradient, dim=1)
    along = gradient / norms.clamp_min(tiny)[:, None]
    if indices is None:
        across = draw(torch.randn, gradient.shape, gradient, generator)
    else:
        across = gaussian(gradient, check_indices(indices, len(gradient)), 0, base_seed(generator))
    for _ in range(2):  # the second time removes what rounding left of the first
        across = across - along * (along * across).sum(1, keepdim=True)
    across = across / torch.linalg.vector_norm(across, dim=1, keepdim=True).clamp_min(tiny)
    return along.view_as(images), across.view_as(images), norms
