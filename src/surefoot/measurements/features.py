"""Features before the last layer: their length and direction, how an attack moves them, cones and the bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..data.loading import load_data
from ..geometry.cones import as_cone_index, bias_dependence, cone_index, stepped_cone_index
from ..geometry.features import feature_displacement, feature_statistics, feature_statistics_of, success_by_bin
from ..geometry.heads import pearson
from ..geometry.probes import STRENGTHS, linear_probe
from ..plain import plain
from ..types import Batch
from .base import Measurement, Rows, Summary, Table, Whole
from .space import CONE_VERSION, OfFeatures, check_cone_version, chunk_features, minimum_loss_centres, space_head
from .summaries import CLASSES, means, rounded, tensor

if TYPE_CHECKING:
    from .context import Context

# How useful the features are elsewhere: a linear classifier on another data set (representation-space Table 10).


class LinearProbe(Whole):
    """Test accuracy of logistic regression on frozen, standardised features of another data set.

    The regularisation is the one of `strengths` that does best on the validation images of those data; the number `strength`
    says which.
    """

    part = "geometry"

    def __init__(self, data: str = "digits", strengths: Sequence[float] = STRENGTHS, max_images: int | None = None) -> None:
        self.data, self.strengths, self.max_images = data, strengths, max_images

    def run(self, context: Context) -> Any:
        own = (context.recipe.data if context.recipe is not None else None) or {}
        source: dict[str, Any] = {"root": None if self.data == "digits" else own.get("root")}
        source["download"] = own.get("download", True)
        height, width = getattr(context.linear, "image_size", context.data.image_size)
        other = load_data(self.data, **source, image_size=(height, width), max_images=self.max_images)
        probe = linear_probe(context.linear, other, self.strengths, context.batch_size)
        return {"values": {"accuracy": probe.test_accuracy, "strength": probe.strength}}


STEPS = 100  # from a feature to the origin


class Features(Measurement):
    """Feature RMS and cosine to the minimum-loss centre of the predicted class (representation-space Table 2).

    And what FGSM changes on `attacked` images (Fig. 7), which an audit measures as `Displacement` instead.
    """

    part = "geometry"
    adds = ("feature_rms", "feature_cosine", "feature_confidence")

    def __init__(self, max_images: int | None = None, attacked: int = 200) -> None:
        self.max_images, self.attacked = max_images, attacked

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        outputs = chunk_features(context, batch)
        confidence, predicted = outputs.logits.float().softmax(1).max(1)
        statistics = feature_statistics(outputs.features, minimum_loss_centres(context), predicted)
        return {"feature_rms": statistics.rms, "feature_cosine": statistics.cosine, "feature_confidence": confidence}

    def run(self, context: Context) -> Any:
        if not self.attacked:
            return {}
        few = context.some(self.attacked if self.max_images is None else min(self.attacked, self.max_images))
        moved = feature_displacement(context.linear, few.images, few.labels, batch_size=context.batch_size)
        return {"perturbation_rms": moved.mean, "relative_perturbation": moved.mean / moved.feature_rms_mean}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        statistics = feature_statistics_of(tensor(rows["feature_rms"]), tensor(rows["feature_cosine"]))
        own = means(context, rows, {"feature_rms": "feature_rms", "feature_cosine": "feature_cosine"})
        values = {
            "feature_rms": own["feature_rms"],
            "feature_rms_deviation": statistics.rms_std,
            "feature_cosine": own["feature_cosine"],
            "feature_cosine_deviation": statistics.cosine_std,
        }
        row = {"feature_rms": statistics.rms_mean, "rms_deviation": statistics.rms_std}
        row |= {"cosine": statistics.cosine_mean, "cosine_deviation": statistics.cosine_std}
        return Summary(values, {"features": features_figure(rows)}, row={**row, **result})


def features_figure(rows: Rows, attacked: Mapping[str, Rows] | None = None) -> dict[str, Any]:
    """Length, cosine and confidence of each image, and the success of attacks by the cosine, where some were run.

    `rows` are those of `Features`, `attacked` those under each attack; images that it was not tried on do not count.
    """
    columns = {"rms": "feature_rms", "cosine": "feature_cosine", "confidence": "feature_confidence"}
    shown: dict[str, Any] = {name: rounded(rows[column]) for name, column in columns.items()}
    return {**shown, "success": success_by_cosine(rows, attacked, "feature_cosine") if attacked else None}


def success_by_cosine(rows: Rows, attacked: Mapping[str, Rows], column: str) -> dict[str, Any]:
    """Images in each bin of the cosine, and the share that each attack broke of the right ones that it was tried on."""
    cosine, result, shares = torch.from_numpy(rows[column]), dict[str, Any](), dict[str, Any]()
    for name, attacked_rows in attacked.items():
        right = rows["correct"].astype(bool) & np.isin(rows["index"], attacked_rows["index"])
        survived = attacked_rows["index"][attacked_rows["correct"].astype(bool)]
        broken = right & ~np.isin(rows["index"], survived)
        result = plain(success_by_bin(cosine, torch.from_numpy(broken), torch.from_numpy(right)))
        shares[name] = result.pop("values")
    return {**result, "attacks": shares}


class Displacement(Measurement):
    """How far FGSM moves features, beside their own length (representation-space Fig. 7)."""

    part = "geometry"
    adds = ("feature_rms", "perturbation_rms")
    alike = ("feature_rms",)
    passes = 5

    def __init__(self, max_images: int | None = None) -> None:
        self.max_images = max_images

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        displacement = feature_displacement(context.linear, batch.images, batch.labels, batch_size=context.batch_size)
        return {"feature_rms": displacement.feature_rms, "perturbation_rms": displacement.values}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        sizes, changes = tensor(rows["feature_rms"]), tensor(rows["perturbation_rms"])
        values = means(context, rows, {"perturbation_rms": "perturbation_rms"})
        values["perturbation_correlation"] = pearson(sizes, changes)
        figure: dict[str, Any] = {"feature_rms": rounded(sizes), "values": rounded(changes)}
        figure |= {"feature_rms_mean": float(sizes.mean()), "mean": float(changes.mean())}
        return Summary(values, {"perturbation": figure})


class Cone(Measurement):
    """When the class first changes on the way from a feature to the origin, of features that are right (Table 5).

    By the paper's 100 steps, and solved exactly besides. The columns have no value where the prediction is wrong. `version` is
    that of the definition: 1 had the exact index only, under the name of the other.
    """

    part = "geometry"
    adds = ("cone_index", "exact_cone_index")

    def __init__(self, max_images: int | None = None, version: int = CONE_VERSION) -> None:
        check_cone_version(version)
        self.max_images, self.version = max_images, version

    def columns(self, context: Context, batch: Batch) -> dict[str, Tensor]:
        outputs = chunk_features(context, batch)
        right = outputs.logits.argmax(1) == batch.labels
        indices = {
            "cone_index": stepped_cone_index(space_head(context), outputs.features, STEPS).values,
            "exact_cone_index": cone_index(space_head(context), outputs.features, STEPS).values,
        }
        return {name: torch.where(right, values, torch.nan) for name, values in indices.items()}

    def summarise(self, context: Context, table: Table, result: Any) -> Summary:
        rows = table.clean(self.max_images)
        columns = (tensor(rows[name]) for name in self.adds)
        stepped, exact = (as_cone_index(indices[~indices.isnan()], STEPS) for indices in columns)
        values = {
            "cone_index": stepped.mean,
            "full_cones": stepped.full,
            "exact_cone_index": exact.mean,
            "exact_full_cones": exact.full,
        }
        row = {"index": stepped.mean, "index_deviation": stepped.std, "full": stepped.full}
        row |= {"exact_index": exact.mean, "exact_index_deviation": exact.std, "exact_full": exact.full}
        return Summary(values, {"cones": {"values": rounded(stepped.values), "steps": stepped.steps}}, row=row)


class Bias(OfFeatures):
    """Mean size of the bias, and the share of right predictions that change without it, over classes (Table 6)."""

    def run(self, context: Context) -> Any:
        outputs, labels = context.outputs(self.max_images)
        change = bias_dependence(space_head(context), outputs.features, labels)
        largest = change.bias.cpu().abs().argsort(descending=True, stable=True)[:CLASSES].sort().values
        figure = {
            "names": [context.data.class_names[number] for number in largest.tolist()],
            "bias": rounded(change.bias.cpu()[largest]),
            "values": rounded(change.values.cpu()[largest]),
        }
        row = {
            "size": change.bias_mean,
            "size_deviation": change.bias_std,
            "changed": change.mean,
            "changed_deviation": change.std,
        }
        values = {"bias_dependence": change.mean, "mean_absolute_bias": change.bias_mean}
        return {"values": values, "figures": {"bias": figure}, "row": row}
