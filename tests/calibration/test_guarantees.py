import json

import pytest
import torch
from test_prediction_sets import drawn

from surefoot.calibration import fit_prediction_sets, fit_risk_threshold
from surefoot.calibration.guarantees import Guarantees, fit_guarantees, load_guarantees
from surefoot.errors import SurefootError
from surefoot.files import write_tensors
from surefoot.types import Predictions


def fitted(score="raps", **options):
    given = drawn(300, 4, 0)
    return Guarantees(fit_prediction_sets(given, 0.8, score, seed=2, **options), fit_risk_threshold(given, 0.45))


@pytest.mark.parametrize("part", ["both", "sets", "risk"])
@pytest.mark.parametrize("by_class", [False, True])
def test_written_and_read(part, by_class, tmp_path):
    both, others = fitted(by_class=by_class), drawn(50, 4, 1, start=700)
    given = {"both": both, "sets": Guarantees(both.prediction_sets), "risk": Guarantees(None, both.risk_threshold)}[part]
    given.save(tmp_path / "g.safetensors")
    again = load_guarantees(tmp_path / "g.safetensors")
    assert again.words == given.words
    one, two = (each.answer(others.logits, others.indices) for each in (given, again))
    for name in ("classes", "confidences", "sets", "answered"):
        first, second = getattr(one, name), getattr(two, name)
        assert (first is None) == (second is None)
        assert first is None or torch.equal(first, second)
    assert (one.sets is None, one.answered is None) == (part == "risk", part == "sets")
    if again.prediction_sets is not None:
        assert again.prediction_sets.fitted_on.overlap(drawn(300, 4, 0)) == 300
        assert again.prediction_sets.score == both.prediction_sets.score


def test_infinite_thresholds_none_and_no_indices(tmp_path):
    bare = Predictions.from_logits(drawn(8, 3, 0).logits, drawn(8, 3, 0).labels)
    few = Guarantees(fit_prediction_sets(bare, 0.9), fit_risk_threshold(bare))
    few.save(tmp_path / "g.safetensors")
    again = load_guarantees(tmp_path / "g.safetensors")
    found = again.answer(torch.randn(5, 3))
    assert found.sets.all()
    assert not found.answered.any()
    assert again.risk_threshold.threshold is None
    assert again.prediction_sets.fitted_on.indices is None
    Guarantees(None, fit_risk_threshold(bare)).save(tmp_path / "r.safetensors")
    assert load_guarantees(tmp_path / "r.safetensors").risk_threshold.note == again.risk_threshold.note


def test_answers():
    found, logits = fitted("lac"), torch.tensor([[9.0, 0, 0, 0], [0, 0.1, 0, 0]])
    answers = found.answer(logits)
    assert answers.classes.tolist() == [0, 1]
    assert torch.allclose(answers.confidences, logits.softmax(1).amax(1))
    assert answers.answered.tolist() == [True, False]
    assert torch.equal(answers.sets, found.prediction_sets.apply(logits))
    half = found.answer(logits.bfloat16())
    assert half.confidences.dtype == torch.float32


def test_outputs_of_an_export():
    logits = drawn(50, 4, 1).logits
    found = fitted("aps", randomised=False)
    answers = found.answer(logits)
    assert list(found.outputs) == ["set", "answer"]
    assert torch.equal(found.outputs["set"](logits), answers.sets)
    assert torch.equal(found.outputs["answer"](logits), answers.answered)
    with pytest.raises(SurefootError, match="Randomised prediction sets cannot be exported; fit them with randomised=False"):
        _ = fitted("aps").outputs
    assert Guarantees().outputs == {}


def test_fitted_together_on_images_that_tuning_does_not_have():
    first, rest = drawn(100, 4, 0), drawn(400, 4, 1, start=100)
    found = fit_guarantees(rest, first, coverage=0.9, score="raps", by_class=True, risk=0.3, confidence=0.9)
    assert (found.prediction_sets.images, found.prediction_sets.tuned_on) == (400, 100)
    assert (found.risk_threshold.images, found.risk_threshold.tuned_on) == (400, 100)
    assert not found.prediction_sets.score.randomised
    assert found.prediction_sets.by_class
    with pytest.raises(SurefootError, match="tuning must be of other images"):
        fit_guarantees(rest, rest, coverage=0.9)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({}, "names no guarantee"),
        ({"os.system": {}}, "names no guarantee"),
        ({"risk_threshold": {"digest": "", "data": ""}}, "is not a whole file of guarantees"),
        ({"risk_threshold": "x"}, "is not a whole file of guarantees"),
        ({"prediction_sets": {"digest": "", "data": "", "score": {"score": "os"}}}, "Unknown score of prediction sets 'os'"),
        ({"prediction_sets": {"digest": "", "data": "", "score": {"temperature": "1"}}}, "is not a whole file of guarantees"),
    ],
)
def test_files_that_are_none(about, message, tmp_path):
    write_tensors(tmp_path / "g.safetensors", {"thresholds": torch.zeros(1)}, {"surefoot": json.dumps(about)})
    with pytest.raises(SurefootError, match=message):
        load_guarantees(tmp_path / "g.safetensors")


def test_nothing_to_write(tmp_path):
    with pytest.raises(SurefootError, match="nothing to write"):
        Guarantees().save(tmp_path / "g.safetensors")
