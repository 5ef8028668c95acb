"""What is kept of the features of known pictures, in one pass: enough for every score, small enough to lie beside a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..calibration.disjoint import uniform_by_image
from ..errors import SurefootError, require
from ..files import read_header, read_tensors, write_tensors
from ..types import Features, Labels, Logits, check_labels, check_scores

BANK = 10_000  # features that are kept themselves
BLOCK = 4096  # images whose products are summed at once
SMALLEST = 1e-6  # of the largest eigenvalue: what is below is the noise of float32


@dataclass
class Known:
    """Counts and sums by class, the second moment around `origin`, and a sample of the features with their largest logits.

    `origin` is the mean of the first batch, so that nothing is lost where features lie far from 0. The sample is of the
    `bank` images with the smallest hash of their number in the order of the pass.
    """

    classes: int
    dimensions: int
    bank: int = BANK
    images: int = 0
    counts: Tensor = field(init=False)
    sums: Tensor = field(init=False)
    second: Tensor = field(init=False)
    origin: Tensor = field(init=False)
    features: Tensor = field(init=False)
    largest: Tensor = field(init=False)
    hashes: Tensor = field(init=False)

    def __post_init__(self) -> None:
        require(self.bank >= 1, "bank", "at least 1", self.bank)
        exact: dict[str, Any] = {"dtype": torch.float64}
        self.counts = torch.zeros(self.classes, **exact)
        self.sums = torch.zeros(self.classes, self.dimensions, **exact)
        self.second = torch.zeros(self.dimensions, self.dimensions, **exact)
        self.origin = torch.zeros(self.dimensions, **exact)
        self.features = torch.zeros(0, self.dimensions)
        self.largest = torch.zeros(0)
        self.hashes = torch.zeros(0, **exact)

    @classmethod
    def of(cls, logits: Logits, features: Features, labels: Labels, bank: int = BANK) -> Known:
        """Of features that are in memory."""
        check_scores("logits", logits)
        require(features.ndim == 2, "features", "images x dimensions", tuple(features.shape))
        known = cls(logits.shape[1], features.shape[1], bank)
        known.add(logits, features, labels)
        return known

    def add(self, logits: Logits, features: Features, labels: Labels) -> None:
        """A batch of known pictures."""
        logits, features, labels = (given.detach().cpu() for given in (logits, features, labels))
        check_scores("logits", logits)
        shape = (len(logits), self.dimensions)
        require(tuple(features.shape) == shape, "features", f"{shape[0]} x {shape[1]}", tuple(features.shape))
        require(bool(features.isfinite().all()), "features", "finite", "NaN or infinity")
        labels = check_labels(labels, self.classes, len(logits))
        if not self.images:
            self.origin = features.double().mean(0) if len(features) else self.origin
        for start in range(0, len(features), BLOCK):
            part = slice(start, start + BLOCK)
            centred = features[part].float() - self.origin.float()
            self.second += centred.T @ centred
            self.sums.index_add_(0, labels[part], centred.double())
        self.counts += labels.bincount(minlength=self.classes)
        hashes = torch.from_numpy(uniform_by_image(np.arange(self.images, self.images + len(labels)), 0, "known features"))
        self.images += len(labels)
        self.keep(features.float(), logits.amax(1).float(), hashes)

    def keep(self, features: Tensor, largest: Tensor, hashes: Tensor) -> None:
        """Those of the sample and of a batch with the smallest hashes."""
        room = self.bank - len(self.hashes)
        if room <= 0:
            wanted = hashes < self.hashes.max()
            features, largest, hashes = features[wanted], largest[wanted], hashes[wanted]
        whole = torch.cat([self.hashes, hashes])
        chosen = whole.argsort()[: self.bank].sort().values
        if len(chosen) == len(whole):
            chosen = torch.arange(len(whole))
        self.features, self.largest = torch.cat([self.features, features])[chosen], torch.cat([self.largest, largest])[chosen]
        self.hashes = whole[chosen]

    @cached_property
    def mean(self) -> Tensor:
        """Of all features."""
        return self.origin + self.sums.sum(0) / self.images

    @cached_property
    def class_means(self) -> Tensor:
        """Of the classes that have images."""
        having = self.counts > 0
        return self.origin + self.sums[having] / self.counts[having, None]

    @cached_property
    def covariance(self) -> Tensor:
        """Around the mean of all, divided by the number of images."""
        shift = self.sums.sum(0) / self.images
        return self.second / self.images - shift.outer(shift)

    @cached_property
    def within(self) -> Tensor:
        """Around the means of the classes (Lee et al. 2018)."""
        having = self.counts > 0
        weighted = self.sums[having] / self.counts[having].sqrt()[:, None]
        return (self.second - weighted.T @ weighted) / self.images

    @cached_property
    def whitening_within(self) -> Tensor:
        """What makes the spread around the means of the classes 1 in every direction."""
        return whitening(self.within)

    def moment_around(self, point: Tensor) -> Tensor:
        """The mean of (h - point)(h - point)^T."""
        shift = self.mean - point
        return self.covariance + shift.outer(shift)

    def save(self, path: str | Path, about: Mapping[str, object] | None = None) -> None:
        """Write a safetensors file; `about` says of what it is."""
        names = ("counts", "sums", "second", "origin", "features", "largest", "hashes")
        said = {"images": self.images, "bank": self.bank, "about": dict(about or {})}
        write_tensors(path, {name: getattr(self, name) for name in names}, {"surefoot": json.dumps(said)})


def load_known(path: str | Path, about: Mapping[str, object] | None = None) -> Known | None:
    """What `save` wrote; None if it is of something else than `about`."""
    kind = "statistics of known features"
    tensors, said = read_tensors(kind, path), read_header(kind, path)
    try:
        classes, dimensions = tensors["sums"].shape
        known = Known(classes, dimensions, bank=said["bank"], images=said["images"])
        for name, tensor in tensors.items():
            setattr(known, name, tensor)
        of = said["about"]
    except (KeyError, TypeError, ValueError) as error:
        raise SurefootError(f"'{path}' was not written by Surefoot: {error!s}.") from error
    return known if about is None or of == json.loads(json.dumps(dict(about))) else None


def whitening(covariance: Tensor) -> Tensor:
    """A matrix M with M M^T the pseudo-inverse: directions that known pictures do not vary in are left out."""
    identity = torch.eye(len(covariance), dtype=covariance.dtype)
    smallest = SMALLEST * largest_eigenvalue(covariance)
    if torch.linalg.cholesky_ex(covariance - smallest * identity).info == 0:  # every eigenvalue is above: none is left out,
        lower = torch.linalg.cholesky(covariance)  # and a triangle costs a fraction of the eigenvectors
        upper: Tensor = torch.linalg.solve_triangular(lower, identity, upper=False).T
        return upper
    values, vectors = torch.linalg.eigh(covariance)
    kept = values > smallest
    white: Tensor = vectors[:, kept] / values[kept].sqrt()
    return white


def largest_eigenvalue(matrix: Tensor, steps: int = 30) -> Tensor:
    """Of a covariance, by power iteration: a threshold needs no more digits than it gives."""
    vector = torch.randn(len(matrix), dtype=matrix.dtype, generator=torch.Generator().manual_seed(0))
    for _ in range(steps):
        vector = F.normalize(matrix @ vector, dim=0, eps=torch.finfo(matrix.dtype).tiny)
    return (vector @ matrix @ vector).clamp_min(torch.finfo(matrix.dtype).tiny)
