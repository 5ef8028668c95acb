"""Whether regions end as cones around the origin wherever training starts (representation-space Fig. 12)."""

from __future__ import annotations

from dataclasses import replace

from ..data.dataset import whole
from ..errors import SurefootError
from ..geometry import cone_index, far_features, far_regions
from .answer_measurements import Metrics
from .cell_runs import alone, run_folder, take_up
from .cells import digest, identity
from .geometry_measurements import seen
from .subjects import Subject


def plane_start(
    subject: Subject, features: bool = False, regions: bool = False, epochs: int = 1, max_images: int | None = None
) -> Metrics:
    """Train the cell's recipe again from features or decision regions that are far from the origin, or both.

    The distance of the features before and after, accuracy, and the index of the first change of class on the way to the
    origin (100: a cone). `epochs` are those that move the features, at first.
    """
    if subject.work is None:
        raise SurefootError("A start of one's own needs a folder to train in.")
    model = subject.recipe.build_model(subject.data).to(subject.device)
    start = f"start{'-features' * features}{'-regions' * regions}-{epochs}"
    name = f"{digest(identity(subject.recipe, subject.data_label))}-{start}"
    images = whole(subject.data.train, subject.batch_size, subject.device).images
    if regions:
        far_regions(model, images[:2])
    if features:
        far_features(model, images, epochs=epochs, seed=subject.recipe.seed)
    before, _ = seen(replace(subject, model=model), max_images)
    with alone(subject.work, name):
        folder = run_folder(subject.work, name)
        run = take_up(subject.recipe, folder, str(subject.device), model)
    after, labels = seen(replace(subject, model=run.model), max_images)
    right = after.logits.argmax(1) == labels
    found = cone_index(run.model.head, after.features[right])
    return {
        "distance.before": float(before.features.double().norm(dim=1).mean()),
        "distance.after": float(after.features.double().norm(dim=1).mean()),
        "accuracy": float(right.double().mean()),
        "index": found.mean,
        "full": found.full,
    }
