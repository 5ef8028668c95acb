"""The scores batch by batch, as torchmetrics counts, and in one call, as `evaluate` does: both equal `scores`."""

import pytest
import torch

from surefoot.calibration import Metric, Predictions, compute, scores
from surefoot.calibration.scoring import NAMES
from surefoot.errors import SurefootError, UnknownName

LOGITS = 2 * torch.randn(300, 7, generator=torch.Generator().manual_seed(0))
LABELS = torch.randint(7, (300,), generator=torch.Generator().manual_seed(1))
WHOLE = scores(Predictions.from_logits(LOGITS, LABELS), intervals=0)
BATCHES = list(zip(LOGITS.split(128), LABELS.split(128), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_batches_give_the_score_of_the_whole(name):
    metric = Metric(name)
    for logits, labels in BATCHES:
        alone = metric(logits, labels)
        assert alone == pytest.approx(float(getattr(scores(Predictions.from_logits(logits, labels), intervals=0), name)))
    assert metric.compute() == pytest.approx(float(getattr(WHOLE, name)))
    metric.reset()
    metric.update(*BATCHES[0])
    assert metric.compute() == pytest.approx(
        float(getattr(scores(Predictions.from_logits(*BATCHES[0]), intervals=0), name)), abs=1e-7
    )


def test_beside_torchmetrics():
    """The same loop, whichever metric is in it."""
    from torchmetrics.classification import MulticlassAccuracy, MulticlassCalibrationError

    pairs = [
        (Metric("ece", of="probabilities"), MulticlassCalibrationError(7, n_bins=15)),
        (Metric("max_error", of="probabilities"), MulticlassCalibrationError(7, n_bins=15, norm="max")),
        (Metric("accuracy", of="probabilities"), MulticlassAccuracy(7, average="micro")),
    ]
    for pair in pairs:
        for metric in pair:
            metric.reset()
            for logits, labels in BATCHES:
                metric.update(logits.softmax(1), labels)
        ours, theirs = (metric.compute() for metric in pair)
        assert ours == pytest.approx(float(theirs), abs=1e-6)
        assert pair[0].higher_is_better == pair[1].higher_is_better


def test_as_evaluate_has_it():
    found = compute(predictions=LOGITS.numpy(), references=LABELS.tolist())
    assert found == pytest.approx({name: float(getattr(WHOLE, name)) for name in NAMES})
    some = compute(predictions=LOGITS.softmax(1), references=LABELS, of="probabilities", names=["ece", "nll"])
    assert some == pytest.approx({"ece": found["ece"], "nll": found["nll"]})


def test_batches_of_all_processes_are_gathered(monkeypatch):
    metric = Metric("ece")
    metric.update(*BATCHES[0])
    others = [Predictions.from_logits(*batch) for batch in BATCHES[1:]]

    def gathered(everywhere, mine):
        everywhere[:] = [mine, others]

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "all_gather_object", gathered)
    assert metric.compute() == pytest.approx(float(WHOLE.ece))


def test_refusals():
    with pytest.raises(UnknownName, match="Unknown score 'eec'. Did you mean 'ece'?"):
        Metric("eec")
    for wrong in (lambda: Metric(of="logit"), lambda: compute(predictions=LOGITS, references=LABELS, of="logit")):
        with pytest.raises(UnknownName, match="Unknown kind of predictions 'logit'. Did you mean 'logits'?"):
            wrong()
    with pytest.raises(SurefootError, match="bins must be at least 1, got 0"):
        Metric(bins=0)
    with pytest.raises(SurefootError, match="ece of no batch is not defined: call update first"):
        Metric().compute()
    with pytest.raises(SurefootError, match="probabilities must be >= 0 and sum to 1"):
        Metric(of="probabilities").update(LOGITS, LABELS)
