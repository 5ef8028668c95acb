"""The loss around an image, in an audit: what bends it, how far it can change, and two pictures of it."""

from __future__ import annotations

from typing import Any

import torch

from ..calibration.bootstrap import mean_estimate
from ..geometry.curvature import hessian_curvature
from ..geometry.fisher import fisher_trace
from ..geometry.hessian import loss_change_bound
from ..geometry.landscapes import loss_landscape
from ..geometry.lipschitz import local_lipschitz
from ..models.observing import evaluating
from ..seeds import generator
from ..types import Batch
from .geometry_of_features import rounded, some
from .records import Record
from .setting import Setting

EXACT = 64  # images for what needs a pass for every class or a second derivative
RIVALS = 9  # classes to which the slope is measured
STEEPER = "first-order radius: exact for a linear net, elsewhere no certificate: a little further away the net may be steeper."
LANDSCAPES = 2
RESOLUTION = 25
LANCZOS = 20  # steps
SECOND = 3.0  # what a product with the Hessian costs, in forward and backward passes


def exact_record(setting: Setting, batch: Batch) -> Record:
    """Fisher trace (magnma Eq. 7), summed over classes; for few images, since every class costs a pass."""
    found = fisher_trace(setting.model, some(batch, EXACT).images, batch_size=setting.batch_size)
    measured = {"fisher_trace": mean_estimate(found.values.cpu(), setting.seed)}
    return Record({"measured": measured, "figures": {"fisher": {"values": rounded(found.values), "method": found.method}}})


def slopes_record(setting: Setting, batch: Batch) -> Record:
    """Gradient norms of logit differences, and the first-order distance to another answer (macs Thm 4.5 for r to 0)."""
    found = local_lipschitz(setting.model, batch.images, batch.labels, rivals=RIVALS, batch_size=setting.batch_size)
    values = {"local_lipschitz": found.values, "first_order_radius": found.radii}
    measured = {name: mean_estimate(each.cpu(), setting.seed) for name, each in values.items()}
    figure = {"values": rounded(found.values), "radii": rounded(found.radii), "note": found.note}
    return Record({"measured": measured, "figures": {"slopes": figure}, "notes": [STEEPER]})


def hessian_record(setting: Setting, batch: Batch) -> Record:
    """Curvature by Hessian-vector products, the largest eigenvalue, and what the loss can change by (magnma Thm 1)."""
    few = some(batch, EXACT)
    options: dict[str, Any] = {"draws": setting.depth.curvature_draws, "generator": generator(setting.seed, "hessian")}
    bent = hessian_curvature(setting.model, few.images, few.labels, **options)
    source = generator(setting.seed, "eigenvalues")
    found = loss_change_bound(setting.model, few.images, few.labels, steps=LANCZOS, generator=source)
    values = {
        "hessian_curvature": bent.values,
        "largest_eigenvalue": found.largest_eigenvalues,
        "loss_change": found.values,
        "two_sided_loss_change": found.two_sided,
    }
    measured = {name: mean_estimate(each.cpu(), setting.seed) for name, each in values.items()}
    points = {"values": rounded(found.values), "gradient_norms": rounded(found.gradient_norms), "distance": found.distance}
    notes = [f"loss change: {found.note}"]
    figures = {"loss_change": points, "hessian": {"values": rounded(bent.values), "step": bent.step}}
    return Record({"measured": measured, "figures": figures, "notes": notes})


def landscape_record(setting: Setting, batch: Batch) -> Record:
    """The loss along the gradient and across it, around the first and the last image (discriminative-noise Fig. 11)."""
    few = some(batch, LANDSCAPES)
    options: dict[str, Any] = {"resolution": RESOLUTION, "generator": generator(setting.seed, "landscape")}
    found = loss_landscape(setting.model, few.images, few.labels, batch_size=setting.batch_size, **options)
    with evaluating(setting.model), torch.inference_mode():
        right = (setting.model(few.images).argmax(1) == few.labels).tolist()
    middle = found.loss[:, RESOLUTION // 2, RESOLUTION // 2]
    rises = (found.loss.flatten(1).amax(1) - middle).tolist()
    names = [f"image {index}" for index in few.indices.tolist()]
    figure = {"offsets": rounded(found.offsets), "loss": [[rounded(row) for row in image] for image in found.loss]}
    figure |= {"names": names, "right": right}
    measured = {"largest_rise_of_the_loss": dict(zip(names, rises, strict=True))}
    return Record({"measured": measured, "figures": {"landscape": figure}})
