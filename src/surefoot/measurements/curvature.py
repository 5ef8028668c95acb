"""The loss around images: how sharply it bends, and how far it changes along its gradient and across it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..errors import UnknownName
from ..geometry._sensitivity import noisy_correct
from ..geometry.curvature import (
    UNITS,
    LossLandscape,
    accuracy_by_curvature,
    curvature_by_count,
    curvature_spread,
    hessian_curvature,
    input_curvature,
    loss_landscape,
)
from ..geometry.fisher import fisher_trace
from ..geometry.hessian import CHANGE_NOTE, loss_change_bound
from ..geometry.lipschitz import RADIUS_NOTE, local_lipschitz
from ..models.last_layer import evaluating
from ..plain import plain
from ..seeds import generator
from ..types import Batch
from .base import Measurement, Summary, Table, Whole
from .space import for_chunk
from .summaries import means, rounded, tensor

if TYPE_CHECKING:
    from .context import Context

# How the loss bends and slopes at an image: curvature beside noise, the Hessian, the Fisher trace, local slopes.


STEP = 0.01
SHARES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
STEEPER = "first-order radius: exact for a linear net, elsewhere no certificate: a little further away the net may be steeper."


def chunk_curvature(context: Context, batch: Batch, draws: int, step: float, units: str = "pixels") -> Tensor:
    """Curvature of the images of a chunk (discriminative-noise Eq. 21), for all who ask for the same."""

    def compute() -> Tensor:
        run: dict[str, Any] = {"indices": batch.indices, "batch_size": context.batch_size, "units": units}
        source = generator(context.seed, "curvature")
        return input_curvature(context.model, batch.images, batch.labels, draws, step, source, **run).values

    return for_chunk(context, batch, ("curvature", draws, step, units), compute)


class Curvature(Measurement):
    """Mean and median of the input-loss curvature, and quartiles of its lowest 90 % (discriminative-noise Eq. 21, Fig. 10)."""

    part = "geometry"
    adds = ("curvature",)

    def __init__(self, draws: int = 20, step: float = STEP, max_images: int | None = 1000, units: str = "pixels") -> None:
        if units not in UNITS:
            raise UnknownName("units", units, UNITS)
        self.draws, self.step, self.max_images, self.units = draws, step, max_images, units
        self.passes = 3 * (draws + 1)

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        return {"curvature": chunk_curvature(context, batch, self.draws, self.step, self.units)}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        spread = curvature_spread({"": tensor(rows["curvature"])})
        figure = {"values": rounded(rows["curvature"]), "step": self.step, "spread": plain(spread)}
        lowest = dict(zip(("lowest90.25", "lowest90.50", "lowest90.75"), spread.values[0, 1:4].tolist(), strict=True))
        bends = rows["curvature"].astype(np.float64)
        middle = {"curvature": float(bends.mean()), "median": float(np.median(bends))}
        values = means(context, rows, {"curvature": "curvature"})
        return Summary(values, {"curvature": figure}, row={**middle, **lowest})


class CurvatureNoise(Measurement):
    """Accuracy under noise of the images of lowest curvature, and curvature by the number of right predictions.

    discriminative-noise Fig. 8 to 10. `level` is the deviation of "gaussian" and the amplitude of "uniform" noise.
    """

    part = "geometry"
    adds = ("curvature", "right_draws")

    def __init__(
        self,
        level: float = 0.06,
        distribution: str = "gaussian",
        draws: int = 10,
        curvature_draws: int = 20,
        max_images: int | None = 1000,
    ) -> None:
        self.level, self.distribution, self.draws = level, distribution, draws
        self.curvature_draws, self.max_images = curvature_draws, max_images
        self.passes = 3 * (curvature_draws + 1) + draws

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        noise: dict[str, Any] = {"level": self.level, "noise": self.distribution, "draws": self.draws, "seed": context.seed}
        run: dict[str, Any] = {"indices": batch.indices, "batch_size": context.batch_size}
        counts = noisy_correct(context.model, batch.images, batch.labels, **noise, **run)
        return {"curvature": chunk_curvature(context, batch, self.curvature_draws, STEP), "right_draws": counts}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        bends, counts = tensor(rows["curvature"]), tensor(rows["right_draws"]).long()
        accuracy = accuracy_by_curvature(bends, counts.double() / self.draws, [share / 100 for share in SHARES])
        groups = curvature_by_count(bends, counts, self.draws)
        figure = {
            "values": rounded(rows["curvature"]),
            "step": STEP,
            "accuracy": plain(accuracy),
            "by_count": plain(groups),
            "spread": plain(curvature_spread({"": bends})),
        }
        row = {f"accuracy.{share}": float(value) for share, value in zip(SHARES, accuracy.values, strict=True)}
        row |= {f"curvature.{count}": float(value) for count, value in enumerate(groups.values)}
        row |= {"pearson": groups.correlation, "image_pearson": groups.image_correlation}
        return Summary(means(context, rows, {"curvature": "curvature"}), {"curvature": figure}, row=row)


class Hessian(Measurement):
    """Curvature by Hessian-vector products, the largest eigenvalue, and what the loss can change by (magnma Thm 1).

    For few images: every product costs a second derivative. `steps` are Lanczos'.
    """

    part = "geometry"
    adds = ("hessian_curvature", "largest_eigenvalue", "loss_change", "two_sided_loss_change", "gradient_norm")
    passes = 270

    def __init__(self, draws: int = 20, steps: int = 20, distance: float = 0.1, max_images: int | None = 64) -> None:
        self.draws, self.steps, self.distance, self.max_images = draws, steps, distance, max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        about = context.model, batch.images, batch.labels
        source = generator(context.seed, "hessian")
        bent = hessian_curvature(*about, self.draws, source, indices=batch.indices)
        source = generator(context.seed, "eigenvalues")
        bound = loss_change_bound(*about, self.distance, self.steps, source, indices=batch.indices)
        columns = (bent.values, bound.largest_eigenvalues, bound.values, bound.two_sided, bound.gradient_norms)
        return dict(zip(self.adds, columns, strict=True))

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        values = means(context, rows, {name: name for name in self.adds if name != "gradient_norm"})
        points = {"values": rounded(rows["loss_change"]), "gradient_norms": rounded(rows["gradient_norm"])}
        change = {**points, "distance": self.distance}
        figures = {"loss_change": change, "hessian": {"values": rounded(rows["hessian_curvature"]), "step": 0.0}}
        return Summary(values, figures, (f"loss change: {CHANGE_NOTE}",))


class Fisher(Measurement):
    """Fisher trace (magnma Eq. 7), summed over classes; for few images, since every class costs a pass."""

    part = "geometry"
    adds = ("fisher_trace",)
    passes = 21  # for ten classes

    def __init__(self, max_images: int | None = 64) -> None:
        self.max_images = max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        return {"fisher_trace": fisher_trace(context.model, batch.images, batch_size=context.batch_size).values}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        figure = {"values": rounded(rows["fisher_trace"]), "method": "exact"}
        return Summary(means(context, rows, {"fisher_trace": "fisher_trace"}), {"fisher": figure})


class Slopes(Measurement):
    """Gradient norms of logit differences, and the first-order distance to another class (macs Thm 4.5 for r to 0).

    `rivals` is to how many other classes the slope is measured.
    """

    part = "geometry"
    adds = ("local_lipschitz", "first_order_radius")
    passes = 19

    def __init__(self, rivals: int = 9, max_images: int | None = None) -> None:
        self.rivals, self.max_images = rivals, max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        run: dict[str, Any] = {"rivals": self.rivals, "batch_size": context.batch_size}
        slopes = local_lipschitz(context.model, batch.images, batch.labels, **run)
        return {"local_lipschitz": slopes.values, "first_order_radius": slopes.radii}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        figure: dict[str, Any] = {"values": rounded(rows["local_lipschitz"]), "radii": rounded(rows["first_order_radius"])}
        figure["note"] = RADIUS_NOTE
        return Summary(means(context, rows, {name: name for name in self.adds}), {"slopes": figure}, (STEEPER,))


# The loss around an image, along its gradient and across it (discriminative-noise Fig. 11).


def surface(context: Context, batch: Batch, reach: float, points: int, purpose: str) -> LossLandscape:
    """The loss on a grid around each image."""
    source = generator(context.seed, purpose)
    run: dict[str, Any] = {"batch_size": context.batch_size, "indices": batch.indices}
    return loss_landscape(context.model, batch.images, batch.labels, reach, points, source, **run)


def rises(landscape: LossLandscape) -> Tensor:
    """How far the loss rises above its value at the image within the grid."""
    middle = landscape.loss.shape[1] // 2
    return landscape.loss.flatten(1).amax(1) - landscape.loss[:, middle, middle]


class LossSurface(Measurement):
    """How far the loss rises above its value at the image within the grid, its deviation there, and its slope (Fig. 11)."""

    part = "geometry"
    adds = ("loss_rise", "loss_spread", "loss_slope")
    passes = 628

    def __init__(self, reach: float = 1.0, points: int = 25, max_images: int | None = 100) -> None:
        self.reach, self.points, self.max_images = reach, points, max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        landscape = surface(context, batch, self.reach, self.points, "surface")
        spread = landscape.loss.double().flatten(1).std(1)
        return {"loss_rise": rises(landscape), "loss_spread": spread, "loss_slope": landscape.gradient_norm}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        names = {"rise": "loss_rise", "spread": "loss_spread", "slope": "loss_slope"}
        return Summary(means(context, table.clean(self.max_images), names))


class Landscape(Whole):
    """Pictures of the loss around a few images (discriminative-noise Fig. 11)."""

    part = "geometry"

    def __init__(self, reach: float = 1.0, points: int = 25, max_images: int = 2) -> None:
        self.reach, self.points, self.max_images = reach, points, max_images

    def pictures_of(self, context: Context) -> Tensor:
        return context.rows(self.max_images)

    def run(self, context: Context) -> Any:
        few = context.some(self.max_images)
        landscape = surface(context, few, self.reach, self.points, "landscape")
        with evaluating(context.model), torch.inference_mode():
            right = (context.model(few.images).argmax(1) == few.labels).tolist()
        names = [f"image {index}" for index in few.indices.tolist()]
        figure = {"offsets": rounded(landscape.offsets), "loss": [[rounded(row) for row in image] for image in landscape.loss]}
        figure |= {"names": names, "right": right}
        values = {"largest_rise_of_the_loss": dict(zip(names, rises(landscape).tolist(), strict=True))}
        return {"values": values, "figures": {"landscape": figure}}
