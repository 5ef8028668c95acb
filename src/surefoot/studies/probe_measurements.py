"""How useful the features are elsewhere: a linear classifier on another data set (representation-space Table 10)."""

from __future__ import annotations

import torch

from ..data.dataset import Split
from ..data.loading import load_data
from ..models.observing import evaluating
from ..types import Features, Labels
from .answer_measurements import Metrics
from .subjects import Subject


def linear_probe(subject: Subject, data: str = "digits", strength: float = 1.0, max_images: int | None = None) -> Metrics:
    """Test accuracy of logistic regression on frozen features; `strength` is scikit-learn's C on standardised features."""
    from sklearn.linear_model import LogisticRegression

    own = subject.recipe.data or {}
    place = {"root": None if data == "digits" else own.get("root"), "download": own.get("download", True)}
    height, width = subject.model.image_size
    other = load_data(data, **place, image_size=(height, width), max_images=max_images)
    train, labels = features_of(subject, other.train)
    mean, std = train.mean(0), train.std(0).clamp_min(1e-6)
    fitted = LogisticRegression(C=strength, max_iter=1000).fit(((train - mean) / std).numpy(), labels.numpy())
    test, truth = features_of(subject, other.test)
    return {"accuracy": float(fitted.score(((test - mean) / std).numpy(), truth.numpy()))}


def features_of(subject: Subject, split: Split) -> tuple[Features, Labels]:
    """The features of a whole split, in evaluation mode, on the CPU."""
    model = subject.model.to(subject.device)
    features, labels = [], []
    with evaluating(model), torch.no_grad():
        for batch in split.batches(subject.batch_size):
            features.append(model.features(batch.images.to(subject.device)).double().cpu())
            labels.append(batch.labels)
    return torch.cat(features), torch.cat(labels)
