"""Measurements of the loss around an image and of the features: what `surefoot.geometry` computes, as figures of a study."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..attacks.attempts import GENERATOR
from ..attacks.evaluation import evaluate
from ..geometry import (
    accuracy_by_curvature,
    bias_dependence,
    centre_stability,
    class_centres,
    class_means,
    cone_index,
    confidence_correlation,
    curvature_by_count,
    curvature_spread,
    feature_displacement,
    feature_statistics,
    input_curvature,
    loss_landscape,
    margin_ratio,
    noisy_correct,
    observed_features,
)
from ..geometry.centres import SCHEDULES
from ..seeds import generator
from ..types import Labels, Outputs
from .answer_measurements import Metrics
from .attack_measurements import check_generator
from .subjects import SAMPLE_SEED, Subject

SHARES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


def sensitivities(subject: Subject, std: float = 0.1, draws: int = 10, max_images: int | None = None) -> Metrics:
    """Mean margin, mean sensitivity and their ratio, and the median of the ratio per image (macs Table 10)."""
    images, labels, _ = subject.images(max_images)
    found = margin_ratio(subject.predictor, images, labels, std, draws, generator(SAMPLE_SEED, "sensitivity"))
    means = {"margin": float(found.margins.double().mean()), "sensitivity": float(found.sensitivities.double().mean())}
    return {**means, "ratio": found.ratio_of_means, "ratio_median": found.median}


def curvature(subject: Subject, draws: int = 20, step: float = 0.01, max_images: int | None = 1000) -> Metrics:
    """Mean and median of the input-loss curvature, and quartiles of its lowest 90 % (discriminative-noise Eq. 21, Fig. 10)."""
    images, labels, _ = subject.images(max_images)
    values = input_curvature(subject.predictor, images, labels, draws, step, generator(SAMPLE_SEED, "curvature")).values
    quartiles = curvature_spread({"": values}).values[0, 1:4].tolist()
    lowest = dict(zip(("lowest90.25", "lowest90.50", "lowest90.75"), quartiles, strict=True))
    return {"curvature": float(values.double().mean()), "median": float(values.double().quantile(0.5)), **lowest}


def curvature_and_noise(
    subject: Subject,
    level: float = 0.06,
    distribution: str = "gaussian",
    draws: int = 10,
    curvature_draws: int = 20,
    max_images: int | None = 1000,
) -> Metrics:
    """Accuracy under noise of the images of lowest curvature, and curvature by the number of right answers (Fig. 8, 9)."""
    images, labels, _ = subject.images(max_images)
    seed = generator(SAMPLE_SEED, "curvature")
    bends = input_curvature(subject.predictor, images, labels, curvature_draws, generator=seed).values
    counts = noisy_correct(subject.predictor, images, labels, level, distribution, draws)
    shares = accuracy_by_curvature(bends, counts.double() / draws, [share / 100 for share in SHARES]).values
    groups = curvature_by_count(bends, counts, draws)
    out = {f"accuracy.{share}": float(value) for share, value in zip(SHARES, shares, strict=True)}
    out |= {f"curvature.{count}": float(value) for count, value in enumerate(groups.values)}
    return {**out, "pearson": groups.correlation, "image_pearson": groups.image_correlation}


def loss_surface(subject: Subject, reach: float = 1.0, points: int = 25, max_images: int | None = 100) -> Metrics:
    """How far the loss rises above its value at the image within the grid, and its deviation there (Fig. 11)."""
    images, labels, _ = subject.images(max_images)
    surface = loss_landscape(subject.predictor, images, labels, reach, points, generator(SAMPLE_SEED, "surface"))
    loss, middle = surface.loss.double().flatten(1), points // 2
    rise = loss.amax(1) - surface.loss[:, middle, middle]
    return {
        "rise": float(rise.mean()),
        "spread": float(loss.std(1).mean()),
        "slope": float(surface.gradient_norm.double().mean()),
    }


def features(subject: Subject, max_images: int | None = None, attacked: int = 200) -> Metrics:
    """Feature RMS and cosine to the minimum-loss centre of the predicted class, and what FGSM changes (Table 2, Fig. 7)."""
    outputs, _ = seen(subject, max_images)
    found = feature_statistics(outputs.features, class_centres(subject.model.head), outputs.logits.argmax(1))
    images, right, _ = subject.images(attacked if max_images is None else min(attacked, max_images))
    moved = feature_displacement(subject.model, images, right)
    return {
        "feature_rms": found.rms_mean,
        "rms_deviation": found.rms_std,
        "cosine": found.cosine_mean,
        "cosine_deviation": found.cosine_std,
        "perturbation_rms": moved.mean,
        "relative_perturbation": moved.mean / moved.feature_rms_mean,
    }


def centres(subject: Subject, max_images: int | None = None) -> Metrics:
    """Pearson r of confidence and cosine to class means, weight vectors and minimum-loss points (Table 1)."""
    outputs, labels = seen(subject, max_images)
    head = subject.model.head
    points = {
        "means": class_means(outputs.features, labels, outputs.logits.argmax(1), head.out_features),
        "weights": head.weight.detach(),
        "minimum_loss": class_centres(head),
    }
    found = confidence_correlation(head, outputs.features, points)
    return {f"pearson.{name}": float(value) for name, value in zip(found.kinds, found.values, strict=True)}


def centre_searches(
    subject: Subject,
    learning_rates: Sequence[float] = (0.001, 0.01, 0.1),
    steps: Sequence[int] = (50, 100, 200),
    schedules: Sequence[str] = SCHEDULES,
    max_images: int | None = None,
) -> Metrics:
    """Pearson r of confidence and cosine to minimum-loss points by every setting of their search (Table 9)."""
    outputs, _ = seen(subject, max_images)
    found = centre_stability(subject.model.head, outputs.features, learning_rates, steps, schedules)
    settings = zip(found.schedules, found.learning_rates, found.steps, found.values.tolist(), strict=True)
    return {f"pearson.{schedule} rate {rate:g} steps {count}": value for schedule, rate, count, value in settings}


def cosine_attacks(
    subject: Subject,
    names: Sequence[str] = ("fgsm", "pgd-weak", "autoattack-weak"),
    max_images: int | None = 1000,
    generator: int = GENERATOR,
) -> Metrics:
    """Attack success where the cosine to the centre is below and above its median, and Pearson r of the two (Fig. 3).

    `generator` is the version of the attacks' draws.
    """
    check_generator(generator)
    images, labels, indices = subject.images(max_images)
    outputs = observed_features(subject.model, images, subject.batch_size)
    cosine = feature_statistics(outputs.features, class_centres(subject.model.head), labels).cosine.double()
    right = outputs.logits.argmax(1) == labels
    out: Metrics = {}
    for name in names:
        result = evaluate(subject.model, images, labels, name, batch_size=subject.batch_size, indices=indices)
        broken = result.broken.to(cosine)
        angles, lost = cosine[right], broken[right]
        low = angles <= angles.median()
        halves = {"low": lost[low], "high": lost[~low]}
        out |= {f"success.{name}.{half}": float(values.mean()) for half, values in halves.items() if len(values)}
        out[f"pearson.{name}"] = float(torch.corrcoef(torch.stack([angles, lost]))[0, 1])
    return out


def cone(subject: Subject, max_images: int | None = None) -> Metrics:
    """Mean and deviation of the index of the first change of class, of features that are right (Table 5)."""
    outputs, labels = seen(subject, max_images)
    found = cone_index(subject.model.head, outputs.features[outputs.logits.argmax(1) == labels])
    return {"index": found.mean, "index_deviation": found.std, "full": found.full}


def bias(subject: Subject, max_images: int | None = None) -> Metrics:
    """Mean size of the bias, and the share of right answers that change without it, over classes (Table 6)."""
    outputs, labels = seen(subject, max_images)
    found = bias_dependence(subject.model.head, outputs.features, labels)
    return {"size": found.bias_mean, "size_deviation": found.bias_std, "changed": found.mean, "changed_deviation": found.std}


def seen(subject: Subject, max_images: int | None) -> tuple[Outputs, Labels]:
    """Features, logits and labels of test images, a batch of images in memory at a time."""
    features, logits, labels = [], [], []
    model = subject.model.to(subject.device)
    for batch in subject.batches(max_images):
        outputs = observed_features(model, batch.images.to(subject.device), subject.batch_size)
        features.append(outputs.features)
        logits.append(outputs.logits)
        labels.append(batch.labels.to(subject.device))
    return Outputs(torch.cat(logits), torch.cat(features)), torch.cat(labels)
