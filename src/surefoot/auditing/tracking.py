"""An audit in the tracker where its run is."""

from __future__ import annotations

from pathlib import Path

from ..errors import SurefootError
from ..files import read_json
from ..training.trackers import check_tracker_of_audits, log_audit
from .number_names import check_audit, numbers_in


def track(folder: str | Path, tracker: str, *, project: str | None = None) -> None:
    """Give a tracker every number of the audit in a folder, as `audit/calibration.ece`, and its page.

    `tracker` is "tensorboard", "mlflow" or "wandb". The audit joins the run that training with this tracker began, or a new one
    of the project that is called as the folder is.

    >>> import torch
    >>> import surefoot as sf
    >>> labels = torch.arange(60) % 3
    >>> logits = 2 * torch.nn.functional.one_hot(labels, 3) + torch.randn(60, 3)
    >>> predictions = sf.Predictions.from_logits(logits, labels)
    >>> found = sf.audit_predictions(predictions, output="audits/mine")
    >>> page = sf.write_page("audits/mine/report.html", ["audits/mine"])
    >>> sf.track("audits/mine", "tensorboard")
    """
    folder = Path(folder)
    check_tracker_of_audits(tracker)
    audit, page = check_audit(folder / "audit.json", read_json("audit", folder / "audit.json")), folder / "report.html"
    if not page.is_file():
        raise SurefootError(f"'{folder}' has no report.html: surefoot audit or sf.write_page writes it.")
    numbers = {f"audit/{name}": float(number.value) for name, number in numbers_in(audit).items()}
    log_audit(folder, tracker, project, numbers, page)
