"""One function from a name to a data set."""

from __future__ import annotations

from dataclasses import replace

from ..registry import Registry
from .dataset import Dataset

DATASETS = Registry(
    "data set",
    [("digits", "surefoot.data.digits:load_digits", "1,797 scanned digits, 32 x 32 RGB, embedded (no download)")],
)


def load_data(name: str, *, seed: int = 0) -> Dataset:
    """Load a data set by name; the same seed gives the same splits."""
    dataset: Dataset = DATASETS.load(name)(seed)
    return replace(dataset, source={"name": name, "seed": seed})
