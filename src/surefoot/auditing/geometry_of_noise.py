"""What a little noise does to logits and loss, in an audit: sensitivity, radius, curvature, stability, and the certificate."""

from __future__ import annotations

from typing import Any

import torch

from ..calibration.bootstrap import estimate, mean_estimate, resampled_sums
from ..geometry._margins import margins
from ..geometry._sensitivity import curvature_bounds, noisy_correct, sensitivity
from ..geometry.certificates import certify
from ..geometry.curvature import accuracy_by_curvature, curvature_by_count, curvature_spread, input_curvature
from ..geometry.lipschitz import radius_estimates
from ..plain import plain
from ..seeds import generator
from ..types import Batch
from .geometry_of_features import rounded, some, space_of
from .records import Record
from .setting import Setting

DRAWS = 10
STD = 0.25  # of the noise of the certificate
RADII = (0.0, 0.25, 0.5, 0.75)


def sensitivity_record(setting: Setting, batch: Batch) -> Record:
    """L(x), S(x), margin over sensitivity and the radius that follows (macs Def. 4.3, Tab. 10, Thm 4.5)."""
    images, labels = batch.images, batch.labels
    model, seed = setting.model, setting.seed
    run: dict[str, Any] = {"batch_size": setting.batch_size}
    found = sensitivity(model, images, draws=DRAWS, generator=generator(seed, "sensitivity"), **run)
    gaps = margins(model, images, labels, **run).double()
    local = found.values.double()
    sums = resampled_sums(torch.stack([gaps, local], 1).cpu(), seed)
    radius = radius_estimates(model, images, labels, draws=DRAWS, generator=generator(seed, "radius"), **run)
    measured = {
        "sensitivity": mean_estimate(local.cpu(), seed),
        "prediction_sensitivity": mean_estimate(found.probability_change.cpu(), seed),
        "margin_to_sensitivity": estimate(float(gaps.mean() / local.mean()), sums[:, 0] / sums[:, 1]),
        "median_margin_to_sensitivity": float((gaps / local).median()),
        "radius": mean_estimate(radius.values.cpu(), seed),
    }
    shown: dict[str, Any] = {"values": rounded(local), "probability_change": rounded(found.probability_change)}
    shown |= {"std": found.std, "margins": rounded(gaps), "median": measured["median_margin_to_sensitivity"]}
    shown["ratio_of_means"] = float(measured["margin_to_sensitivity"])
    radii = {"values": rounded(radius.values), "logit_radii": rounded(radius.logit_radii), "note": radius.note}
    figures = {"sensitivity": shown, "radii": radii}
    return Record({"measured": measured, "figures": figures, "notes": [f"radius: {radius.note}"]})


def curvature_record(setting: Setting, batch: Batch) -> Record:
    """Eq. 21, and how often each image is right under noise (discriminative-noise Fig. 8 to 10)."""
    images, labels = batch.images, batch.labels
    options: dict[str, Any] = {"generator": generator(setting.seed, "curvature"), "batch_size": setting.batch_size}
    found = input_curvature(setting.model, images, labels, draws=setting.depth.curvature_draws, **options)
    right = noisy_correct(setting.model, images, labels, draws=DRAWS, seed=setting.seed, batch_size=setting.batch_size)
    values = found.values.cpu()
    figure = {
        "values": rounded(values),
        "step": found.step,
        "accuracy": plain(accuracy_by_curvature(values, right.cpu() / DRAWS)),
        "by_count": plain(curvature_by_count(values, right.cpu(), DRAWS)),
        "spread": plain(curvature_spread({"": values})),
    }
    measured = {"curvature": mean_estimate(found.values.cpu(), setting.seed)}
    return Record({"measured": measured, "figures": {"curvature": figure}})


def stability_record(setting: Setting, batch: Batch) -> Record:
    """Feature and loss stability, and Thm 6.1's bounds on the eigenvalues, which assume what no network is."""
    images, labels = batch.images, batch.labels
    options: dict[str, Any] = {"generator": generator(setting.seed, "stability"), "batch_size": setting.batch_size}
    found = curvature_bounds(space_of(setting.model), images, labels, **options)
    stable = found.stability
    measured = {
        "feature_distance_under_noise": stable.feature_distances,
        "loss_outside": stable.outside_losses,
        "eigenvalue_upper_bound": found.values,
        "eigenvalue_lower_bound": found.lower,
    }
    kept = {name: mean_estimate(values.cpu().double(), setting.seed) for name, values in measured.items()}
    shown: dict[str, Any] = {"values": rounded(stable.values), "outside_losses": rounded(stable.outside_losses)}
    shown |= {"clean_losses": rounded(stable.clean_losses), "distance": stable.distance}
    bounds = {"values": rounded(found.values), "lower": rounded(found.lower), "note": found.note}
    figures = {"stability": shown, "eigenvalue_bounds": bounds}
    return Record({"measured": kept, "figures": figures, "notes": [f"eigenvalue bounds: {found.note}"]})


def certified_record(setting: Setting, batch: Batch) -> Record:
    """Certified accuracy of the smoothed classifier at some radii (Cohen et al. 2019)."""
    few = some(batch, setting.depth.certified_images)
    run: dict[str, Any] = {"seed": setting.seed, "indices": few.indices, "batch_size": setting.batch_size}
    found = certify(setting.model, few.images, few.labels, STD, **run)
    right = found.predictions.cpu() == few.labels.cpu()
    shares = {f"{radius:g}": mean_estimate((right & (found.values.cpu() >= radius)).double(), setting.seed) for radius in RADII}
    measured = {"certified_accuracy": shares, "certified_noise": STD, "certified_images": len(right)}
    figure = {"values": rounded(found.values), "predictions": found.predictions.tolist(), "labels": few.labels.tolist()}
    return Record({"measured": measured, "figures": {"certificates": {**figure, "std": STD}}})
