"""A representation space of two or three dimensions: its regions drawn, and trained again from far away."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..data.dataset import whole
from ..errors import SurefootError, require
from ..geometry.cones import cone_index, confidence_angles, stepped_cone_index
from ..geometry.features import attack_path
from ..geometry.minimum_loss import class_targets
from ..geometry.planes import (
    RepresentationPlane,
    far_features,
    far_regions,
    loss_field,
    plane_snapshots,
    representation_plane,
)
from ..models.classifier import Classifier
from ..plain import plain
from ..types import Labels, Outputs
from .base import Whole
from .space import CONE_VERSION, check_cone_version, space_head

if TYPE_CHECKING:
    from torch import Tensor

    from .context import Context

Planes = dict[int, RepresentationPlane]  # by epoch
INDICES = {"": stepped_cone_index, "exact_": cone_index}  # by the beginning of their names
DRAWN, GRID = 300, 61  # images in a snapshot of training, and points along each of its axes
FIELD = 60  # points of the loss along each axis of a plane


class Plane(Whole):
    """Regions, confidence, features and the ways of a PGD attack, for a model with two or three features.

    `paths` is the number of images whose way under attack is drawn. `smoothing` is that of the targets whose loss the centres
    minimise; the loss that is drawn may have a target of two classes, the share `share` of its own and the rest of `other`.
    `resolution` is the number of points of the grid along each axis (201, or 31 in three dimensions, unless given).
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
        resolution: int | None = None,
    ) -> None:
        class_targets(2 if other is None else other + 1, smoothing, other, share)  # refuses what is no target
        self.max_images, self.paths = max_images, paths
        self.smoothing, self.other, self.share, self.resolution = smoothing, other, share, resolution

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
        plane = representation_plane(model, few.images, few.labels, **run, smoothing=self.smoothing, resolution=self.resolution)
        figure = {"plane": plain(plane), "path": plain(attack_path(model, fewer.images, fewer.labels, **run))}
        if head.in_features == 2:
            figure["angles"] = plain(confidence_angles(head, plane.features, centres=plane.centres))
            label = int(fewer.labels[0])
            soft: dict[str, Any] = {"smoothing": self.smoothing, "other": self.other, "share": self.share}
            field = plain(loss_field(head, label, float(plane.axis[-1]), resolution=FIELD, **soft))
            figure["field"] = {**field, "class": context.data.class_names[label]}
            figure["field_path"] = plain(attack_path(model, fewer.images[:1], fewer.labels[:1], **run))
            own = few[(few.labels == label).nonzero().flatten()[: self.paths]]
            figure["moved"] = plain(attack_path(model, own.images, own.labels, steps=1, step_size=8 / 255, **run))  # FGSM
        return {"values": {}, "figures": {"plane": figure}}


class PlaneStart(Whole):
    """Whether regions end as cones around the origin wherever training starts (representation-space Fig. 12).

    The recipe is trained again from features or decision regions that are far from the origin, or both: the distance of the
    features before and after, accuracy, and the first of 100 steps to the origin that changes the class (100: a cone), with the
    exact index besides; `version` is that of the index, as in `Cone`.
    `epochs` are those that move the features, at first. `snapshots` is the number of planes that the figure shows, from before
    to after training; of a run that was begun before it has these two. Needs `context.recipe`, and a `context.trainer` whose
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
        snapshots: int = 0,
    ) -> None:
        check_cone_version(version)
        self.features, self.regions, self.epochs, self.max_images = features, regions, epochs, max_images
        require(snapshots == 0 or snapshots >= 2, "snapshots", "0, or at least 2", snapshots)
        self.version, self.snapshots = version, snapshots

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
        with self.watched(context, model, int(recipe.training["epochs"])) as planes:
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
        if not self.snapshots:
            return {"values": values}
        epochs, few = int(recipe.training["epochs"]), context.some(DRAWN)
        planes = planes if len(planes) > epochs // self.every(epochs) else {0: planes[0]}  # others are of a part of the run
        planes = {**planes, epochs: representation_plane(trained, few.images, few.labels, resolution=GRID)}
        shown = [{"epoch": epoch, "plane": plain(plane)} for epoch, plane in planes.items()]
        return {"values": values, "figures": {"starts": shown}}

    def watched(self, context: Context, model: Classifier, epochs: int) -> AbstractContextManager[Planes]:
        """Planes of the model from before training and after some epochs of it, by epoch, if any are wanted."""
        if not self.snapshots:
            return nullcontext({})
        few = context.some(DRAWN)
        return plane_snapshots(model, few.images, few.labels, self.every(epochs), GRID)

    def every(self, epochs: int) -> int:
        """How many epochs are between two snapshots."""
        return max(1, round(epochs / (self.snapshots - 1)))

    def outputs(self, context: Context, model: Classifier) -> tuple[Outputs, Labels]:
        """What another model makes of the same images."""
        return replace(context, space=model, kept={}).outputs(self.max_images)
