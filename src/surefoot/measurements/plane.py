"""A representation space of two or three dimensions: its regions drawn, and trained again from far away."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..data.dataset import whole
from ..errors import SurefootError
from ..geometry.cones import cone_index, confidence_angles, stepped_cone_index
from ..geometry.features import attack_path
from ..geometry.minimum_loss import class_targets
from ..geometry.planes import far_features, far_regions, loss_field, representation_plane
from ..models.classifier import Classifier
from ..plain import plain
from ..types import Labels, Outputs
from .base import Whole
from .space import CONE_VERSION, check_cone_version, space_head

if TYPE_CHECKING:
    from torch import Tensor

    from .context import Context

INDICES = {"": stepped_cone_index, "exact_": cone_index}  # by the beginning of their names
FIELD = 60  # points of the loss along each axis of a plane


class Plane(Whole):
    """Regions, confidence, features and the ways of a PGD attack, for a model with two or three features.

    `paths` is the number of images whose way under attack is drawn. `smoothing` is that of the targets whose loss the centres
    minimise; the loss that is drawn may have a target of two classes, the share `share` of its own and the rest of `other`.
    Nothing is measured where there are more features.
    """

    part = "geometry"

    def __init__(
        self,
        max_images: int | None = 500,
        paths: int = 20,
        smoothing: float = 0.0,
        other: int | None = None,
        share: float = 1.0,
    ) -> None:
        class_targets(2 if other is None else other + 1, smoothing, other, share)  # refuses what is no target
        self.max_images, self.paths = max_images, paths
        self.smoothing, self.other, self.share = smoothing, other, share

    def pictures_of(self, context: Context) -> Tensor:
        return context.rows(self.max_images) if self.fits(context) else context.rows(self.max_images)[:0]

    def fits(self, context: Context) -> bool:
        """Whether there are two or three features."""
        try:
            return space_head(context).in_features in (2, 3)
        except SurefootError:
            return False

    def run(self, context: Context) -> Any:
        if not self.fits(context):
            return {"values": {}}
        head = space_head(context)
        model, few, fewer = context.linear, context.some(self.max_images), context.some(self.paths)
        run: dict[str, Any] = {"batch_size": context.batch_size}
        plane = representation_plane(model, few.images, few.labels, **run, smoothing=self.smoothing)
        figure = {"plane": plain(plane), "path": plain(attack_path(model, fewer.images, fewer.labels, **run))}
        if head.in_features == 2:
            figure["angles"] = plain(confidence_angles(head, plane.features, centres=plane.centres))
            label = int(fewer.labels[0])
            soft: dict[str, Any] = {"smoothing": self.smoothing, "other": self.other, "share": self.share}
            field = plain(loss_field(head, label, float(plane.axis[-1]), resolution=FIELD, **soft))
            figure["field"] = {**field, "class": context.data.class_names[label]}
            figure["field_path"] = plain(attack_path(model, fewer.images[:1], fewer.labels[:1], **run))
        return {"values": {}, "figures": {"plane": figure}}


class PlaneStart(Whole):
    """Whether regions end as cones around the origin wherever training starts (representation-space Fig. 12).

    The recipe is trained again from features or decision regions that are far from the origin, or both: the distance of the
    features before and after, accuracy, and the first of 100 steps to the origin that changes the class (100: a cone), with the
    exact index besides; `version` is that of the index, as in `Cone`.
    `epochs` are those that move the features, at first. Needs `context.recipe`, and a `context.trainer` whose
    `run(recipe, model, suffix)` trains this model by this recipe in a folder named for both recipe and suffix.
    """

    part = "geometry"

    def __init__(
        self,
        features: bool = False,
        regions: bool = False,
        epochs: int = 1,
        max_images: int | None = None,
        version: int = CONE_VERSION,
    ) -> None:
        check_cone_version(version)
        self.features, self.regions, self.epochs, self.max_images = features, regions, epochs, max_images
        self.version = version

    @property
    def suffix(self) -> str:
        """What tells the run from the recipe's own and from other starts."""
        return f"-start{'-features' * self.features}{'-regions' * self.regions}-{self.epochs}"

    def run(self, context: Context) -> Any:
        recipe, trainer = context.recipe, context.trainer
        if recipe is None or trainer is None:
            raise SurefootError("A start of one's own needs a folder to train in.")
        model = recipe.build_model(context.data).to(context.device)
        images = whole(context.data.train, context.batch_size, context.device).images
        if self.regions:
            far_regions(model, images[:2])
        if self.features:
            far_features(model, images, epochs=self.epochs, seed=recipe.seed)
        before, _ = self.outputs(context, model)
        trained = trainer.run(recipe, model, self.suffix).model
        after, labels = self.outputs(context, trained)
        right = after.logits.argmax(1) == labels
        indices = {name: index(trained.head, after.features[right]) for name, index in INDICES.items()}
        values = {
            "distance.before": float(before.features.double().norm(dim=1).mean()),
            "distance.after": float(after.features.double().norm(dim=1).mean()),
            "accuracy": float(right.double().mean()),
        }
        for name, cones in indices.items():
            values |= {f"{name}index": cones.mean, f"{name}full": cones.full}
        return {"values": values}

    def outputs(self, context: Context, model: Classifier) -> tuple[Outputs, Labels]:
        """What another model makes of the same images."""
        return replace(context, space=model, kept={}).outputs(self.max_images)
