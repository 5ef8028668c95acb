"""Temperature and feature scaling: one number divides the logits or multiplies the features, and how it is found."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..errors import require
from ..seeds import generator
from ..types import Logits, Predictions
from .calibrators import Calibrator, FittedOn, widened

# The scale of logits that minimises NLL, to machine precision: the heart of temperature and of feature scaling.
#
# NLL of the logits s u + o is convex in s (a log-sum-exp of lines): Newton steps, inside a bracket that the slope's sign
# narrows.


logger = logging.getLogger("surefoot")
CELLS = 2**20  # logits held in float64 at once
SAMPLE = 2000  # images on which the search begins, so that few passes over all of them are left
FLATTEST = 1e-3  # the scale stops where logits differ by this (root mean square) when no scale helps
STEPS = 100
ENOUGH = 1e-9  # of a relative step: Newton squares the error, so the next one would be below the rounding
EPSILON = 2.0**-52


@dataclass(frozen=True)
class Scale:
    """The best scale, how many times all logits were read to find it, and what to say if there is no minimum."""

    value: float
    passes: int
    note: str = ""


class Problem:
    """Logits s u + o: `lines` is u (images x classes), `offset` is o (classes), or 0; images may have weights."""

    def __init__(self, lines: Tensor, labels: Tensor, offset: Tensor | None, weights: Tensor | None = None) -> None:
        require(len(lines) > 0, "predictions", "of at least one image", 0)
        self.lines, self.labels = lines.detach(), labels.cpu()
        self.offset = torch.zeros(1, dtype=torch.float64) if offset is None else offset.detach().double()
        self.weights = torch.ones(len(lines), dtype=torch.float64) if weights is None else weights
        self.passes = 0

    def batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Some lines at a time, in float64, with their labels and weights; counts as a pass."""
        self.passes += 1
        rows = max(1, CELLS // self.lines.shape[1])
        for start in range(0, len(self.lines), rows):
            chosen = slice(start, start + rows)
            yield self.lines[chosen].cpu().double(), self.labels[chosen].unsqueeze(1), self.weights[chosen]

    def slope_and_curvature(self, scale: float) -> tuple[float, float]:
        """First and second derivative of the mean NLL: mean of E_p[u] - u_label, and mean of Var_p[u]."""
        slope = curvature = 0.0
        for lines, labels, weights in self.batches():
            lines = lines - lines.gather(1, labels)  # not in place: they may be the caller's own
            p = (lines * scale + self.offset).softmax(1)
            mean = (p * lines).sum(1)
            slope += float(mean @ weights)
            curvature += float((p * (lines - mean.unsqueeze(1)).square()).sum(1) @ weights)
        total = float(self.weights.sum())
        return slope / total, curvature / total

    def mean_confidence(self, scale: float) -> float:
        sums = [float((lines * scale + self.offset).softmax(1).amax(1).sum()) for lines, _, _ in self.batches()]
        return sum(sums) / len(self.lines)

    def describe(self) -> tuple[Tensor, float, float]:
        """Which labels have the highest line, the slope at 0, and the root mean square of centred lines."""
        right, slope, square = [], 0.0, 0.0
        flat = self.offset.expand(self.lines.shape[1]).softmax(0)
        for lines, labels, weights in self.batches():
            own = lines.gather(1, labels).squeeze(1)
            right.append(own == lines.amax(1))
            slope += float((lines @ flat - own) @ weights)
            square += float((lines - lines.mean(1, keepdim=True)).square().mean(1).sum())
        return torch.cat(right), slope / float(self.weights.sum()), (square / len(self.lines)) ** 0.5

    def sample(self, right: Tensor) -> Problem:
        """Some right and some wrong predictions, weighted to stand for all: the wrong decide where the minimum is."""
        chosen, weights = [], []
        for kind in (right.nonzero().squeeze(1), (~right).nonzero().squeeze(1)):
            some = kind[torch.linspace(0, len(kind) - 1, min(len(kind), SAMPLE // 2)).long()]
            chosen.append(some)
            weights.append(torch.full((len(some),), len(kind) / max(len(some), 1), dtype=torch.float64))
        rows = torch.cat(chosen)
        return Problem(self.lines[rows.to(self.lines.device)], self.labels[rows], self.offset, torch.cat(weights))


def best_scale(lines: Tensor, labels: Tensor, offset: Tensor | None = None) -> Scale:
    """The minimiser of the mean NLL over s > 0; where there is none, the bound that the note states."""
    problem = Problem(lines, labels, offset)
    right, slope_at_zero, spread = problem.describe()
    if spread == 0:
        return noted(1.0, problem, "The logits of every image are all equal, so their scale does not matter; it is left at 1.")
    if bool(right.all()):
        return sharpest(problem, spread)
    if slope_at_zero >= 0:
        words = "The logits say less than nothing about the labels, so NLL is lowest at an infinite temperature"
        return noted(FLATTEST / spread, problem, f"{words}; it stops where logits differ by {FLATTEST:g}.")
    start = 1 / spread
    if len(lines) > 2 * SAMPLE:
        part = problem.sample(right)
        if part.describe()[1] < 0:
            start = solve(part, start)
    return Scale(solve(problem, start), problem.passes)


def solve(problem: Problem, start: float) -> float:
    """Newton's steps on the slope, kept inside the bracket of its zero; a step that leaves it is replaced by the middle."""
    low, high, scale = 0.0, math.inf, start
    for _ in range(STEPS):
        slope, curvature = problem.slope_and_curvature(scale)
        step = slope / curvature if curvature > 0 else math.copysign(math.inf, slope)
        if abs(step) <= ENOUGH * scale:
            return scale - step
        low, high = (scale, high) if slope < 0 else (low, scale)
        scale -= step
        if not low < scale < min(high, 4 * low if low else math.inf):
            scale = min(4 * low, math.sqrt(low * high)) if low else high / 4
        if low > 0 and high <= low * (1 + 4 * EPSILON):
            return scale
    return scale


def sharpest(problem: Problem, spread: float) -> Scale:
    """Every prediction is right, so that NLL falls for ever as the scale grows: stop at what the number of images can support.

    After n right predictions of n one expects (n + 1) / (n + 2) of the next to be right (Laplace's rule of succession); the
    mean confidence stops there.
    """
    count = len(problem.lines)
    bound = (count + 1) / (count + 2)
    low, high = 0.0, 1 / spread
    while problem.mean_confidence(high) < bound and high * spread < 1e6:
        low, high = high, 2 * high
    while high - low > 4 * EPSILON * high:
        middle = (low + high) / 2
        low, high = (middle, high) if problem.mean_confidence(middle) < bound else (low, middle)
    words = f"Every one of {count} images is right, so NLL has no minimum: it falls for ever as the temperature goes to 0"
    return noted(high, problem, f"{words}; it stops where the mean confidence is {count + 1}/{count + 2}.")


def noted(value: float, problem: Problem, note: str) -> Scale:
    logger.warning(note)
    return Scale(value, problem.passes, note)


# Temperature scaling: one number divides the logits (Guo et al. 2017); fitted once, or for each half on the other one.


@dataclass(frozen=True, kw_only=True)
class Temperature(Calibrator):
    """p = softmax(z / T): above 1 makes a model less sure. `passes` is how often the fit read the logits."""

    temperature: float
    passes: int = 0
    keeps_order = True

    def __post_init__(self) -> None:
        require(self.temperature > 0, "temperature", "positive", self.temperature)

    def apply(self, logits: Logits) -> Logits:
        return logits / self.temperature


def fit_temperature(predictions: Predictions) -> Temperature:
    """The temperature that minimises NLL on these predictions, to machine precision.

    Where there is no minimum, because every image is right, the temperature stops at a bound that `note` states.
    """
    fit = best_scale(predictions.logits, predictions.labels)
    seen = FittedOn.of(predictions)
    return Temperature(temperature=1 / fit.value, passes=fit.passes, note=fit.note, fitted_on=seen)


@dataclass(frozen=True)
class CrossFit:
    """The temperature of each fold, fitted on the other one, and the fold of each image."""

    fits: tuple[Temperature, Temperature]
    folds: Tensor

    @property
    def temperatures(self) -> Tensor:
        """The temperature of each image."""
        return torch.tensor([fit.temperature for fit in self.fits], dtype=torch.float64)[self.folds]

    def calibrate(self, predictions: Predictions) -> Predictions:
        """The same images in the same order, perhaps corrupted, each by the temperature that did not see it."""
        require(
            len(predictions) == len(self.folds), "predictions", f"of the {len(self.folds)} images of the fit", len(predictions)
        )
        return divided(predictions, self.temperatures)


def divided(predictions: Predictions, temperatures: Tensor) -> Predictions:
    """Each image's logits divided by its own temperature."""
    logits = widened(predictions.logits)
    return replace(predictions, logits=logits / temperatures.to(logits).unsqueeze(1))


def cross_fit_temperature(predictions: Predictions, seed: int = 0) -> CrossFit:
    """Two-fold cross-fitting: halves drawn at random within each class, each scaled by the temperature of the other."""
    require(len(predictions) >= 2, "predictions", "of at least two images for two folds", len(predictions))
    random = torch.randperm(len(predictions), generator=generator(seed, "folds"))
    order = random[predictions.labels.cpu()[random].argsort(stable=True)]  # by class, at random within a class
    folds = torch.empty(len(predictions), dtype=torch.long)
    folds[order] = torch.arange(len(predictions)) % 2
    first, second = (fit_temperature(predictions[(folds != fold).nonzero().squeeze(1)]) for fold in (0, 1))
    return CrossFit((first, second), folds)


# Feature scaling: one number multiplies the penultimate features (representation-space.txt, Section 4.3 and App. L).


@dataclass(frozen=True, kw_only=True)
class FeatureScaling(Calibrator):
    """z' = W (S f) + b = S (z - b) + b: temperature 1 / S but for the bias b of the final layer."""

    scale: float
    bias: Tensor

    def apply(self, logits: Logits) -> Logits:
        bias = self.bias.to(logits)
        return (logits - bias) * self.scale + bias


def scale_features(predictions: Predictions, head: nn.Linear) -> FeatureScaling:
    """The factor of the features that entered `head` which minimises NLL, to machine precision.

    Without a bias in the head this is temperature scaling with T = 1 / S.
    """
    require(head.out_features == predictions.num_classes, "head", f"of {predictions.num_classes} classes", head.out_features)
    bias = torch.zeros(head.out_features) if head.bias is None else head.bias.detach().cpu()
    logits = widened(predictions.logits)
    lines = logits - bias.to(logits)
    fit = best_scale(lines, predictions.labels, bias)
    return FeatureScaling(scale=fit.value, bias=bias, note=fit.note, fitted_on=FittedOn.of(predictions))
