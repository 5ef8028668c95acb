"""What a little noise does to logits and features: sensitivity, the radius that follows from it, and stability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from ..calibration.bootstrap import estimate, resampled_sums
from ..geometry._sensitivity import STABILITY_NOTE, curvature_bounds, eigenvalue_bound, longest_row, sensitivity
from ..geometry.lipschitz import RADIUS_NOTE, radius_estimates
from ..seeds import generator
from ..types import Batch
from .base import Measurement, Summary, Table
from .space import space_head
from .summaries import mean_of, means, rounded, tensor

if TYPE_CHECKING:
    from .context import Context


class Sensitivity(Measurement):
    """L(x), S(x), and margin over sensitivity: of the means, and of the middle image (macs Def. 4.3, Table 10)."""

    part = "geometry"
    adds = ("sensitivity", "probability_change")
    passes = 11

    def __init__(self, std: float = 0.1, draws: int = 10, max_images: int | None = None) -> None:
        self.std, self.draws, self.max_images = std, draws, max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        run: dict[str, Any] = {"indices": batch.indices, "batch_size": context.batch_size}
        source = generator(context.seed, "sensitivity")
        change = sensitivity(context.model, batch.images, self.std, self.draws, source, **run)
        return {"sensitivity": change.values, "probability_change": change.probability_change}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        margins, local = (rows[name].astype(np.float64) for name in ("margin", "sensitivity"))
        sums = resampled_sums(np.stack([margins, local], 1), context.seed, context.intervals, ids=rows["index"])
        with np.errstate(divide="ignore", invalid="ignore"):  # a model that noise does not move
            ratios = margins / local
            ratio = estimate(float(margins.mean() / local.mean()), sums[:, 0] / sums[:, 1])
            middle = float(np.sort(ratios)[(len(ratios) - 1) // 2])
            row = {"margin": float(margins.mean()), "sensitivity": float(local.mean()), "ratio": float(ratio)}
            row["ratio_median"] = float(np.median(ratios))
        values = means(context, rows, {"sensitivity": "sensitivity", "prediction_sensitivity": "probability_change"})
        values |= {"margin_to_sensitivity": ratio, "median_margin_to_sensitivity": middle}
        shown: dict[str, Any] = {"values": rounded(local), "probability_change": rounded(rows["probability_change"])}
        shown |= {"std": self.std, "margins": rounded(margins), "median": middle, "ratio_of_means": float(ratio)}
        return Summary(values, {"sensitivity": shown}, row=row)


class Radius(Measurement):
    """The radius within which the class stays, from a Lipschitz constant of samples (macs Thm 4.5, Cor. 4.6)."""

    part = "geometry"
    adds = ("radius", "logit_radius")
    passes = 11

    def __init__(self, std: float = 0.1, draws: int = 10, max_images: int | None = None) -> None:
        self.std, self.draws, self.max_images = std, draws, max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        run: dict[str, Any] = {"indices": batch.indices, "batch_size": context.batch_size}
        source = generator(context.seed, "radius")
        estimates = radius_estimates(context.model, batch.images, batch.labels, self.std, self.draws, source, **run)
        return {"radius": estimates.values, "logit_radius": estimates.logit_radii}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        radii = {"values": rounded(rows["radius"]), "logit_radii": rounded(rows["logit_radius"]), "note": RADIUS_NOTE}
        return Summary(means(context, rows, {"radius": "radius"}), {"radii": radii}, (f"radius: {RADIUS_NOTE}",))


class Stability(Measurement):
    """Feature and loss stability, and the bounds on eigenvalues of discriminative-noise Thm 6.1, which no network meets."""

    part = "geometry"
    adds = (
        "stable_draws",
        "feature_distance_under_noise",
        "loss_outside",
        "clean_loss",
        "largest_logit_under_noise",
        "eigenvalue_lower_bound",
    )
    passes = 24

    def __init__(self, std: float = 0.06, distance: float = 1.0, draws: int = 20, max_images: int | None = None) -> None:
        self.std, self.distance, self.draws, self.max_images = std, distance, draws, max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        run: dict[str, Any] = {"indices": batch.indices, "batch_size": context.batch_size}
        source, noise = generator(context.seed, "stability"), (self.std, self.distance, self.draws)
        bounds = curvature_bounds(context.linear, batch.images, batch.labels, *noise, source, **run)
        stable = bounds.stability
        columns = (stable.values, stable.feature_distances, stable.outside_losses, stable.clean_losses, stable.largest_logits)
        return dict(zip(self.adds, (*columns, bounds.lower), strict=True))

    def run(self, context: Context) -> Any:
        return longest_row(space_head(context))

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        largest = float(rows["largest_logit_under_noise"].max())  # K_max of the theorem, which is that of all images
        upper = eigenvalue_bound(tensor(rows["stable_draws"]), largest, result, self.std, self.distance).numpy()
        values = means(context, rows, {name: name for name in ("feature_distance_under_noise", "loss_outside")})
        values["eigenvalue_upper_bound"] = mean_of(context, rows, upper)
        values["eigenvalue_lower_bound"] = mean_of(context, rows, rows["eigenvalue_lower_bound"])
        shown: dict[str, Any] = {"values": rounded(rows["stable_draws"]), "outside_losses": rounded(rows["loss_outside"])}
        shown |= {"clean_losses": rounded(rows["clean_loss"]), "distance": self.distance}
        bounds = {"values": rounded(upper), "lower": rounded(rows["eigenvalue_lower_bound"]), "note": STABILITY_NOTE}
        figures = {"stability": shown, "eigenvalue_bounds": bounds}
        return Summary(values, figures, (f"eigenvalue bounds: {STABILITY_NOTE}",))
