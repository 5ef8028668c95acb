"""The Ray cluster that studies and audits share, connected to when it is first needed."""

from __future__ import annotations

import os
from typing import Any

from .errors import SurefootError

RETRIES = 5  # deaths of a node or worker that a piece of work survives


def connect() -> Any:
    """Ray, connected to a cluster; one is not started, since a cluster of one machine is what `local` is for."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise SurefootError("The ray engine needs Ray: pip install 'surefoot[ray]'.") from error
    if not ray.is_initialized():
        try:
            ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), logging_level="ERROR", log_to_driver=False)
        except ConnectionError as error:
            raise SurefootError(
                "No Ray cluster is running here: start one with `ray start --head`, or set RAY_ADDRESS."
            ) from error
    return ray
