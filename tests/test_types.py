import pickle

import pytest
import torch

from surefoot import Predictions
from surefoot.errors import SurefootError
from surefoot.types import Estimate, check_images, check_labels

LOGITS = torch.tensor([[2.0, 0.0, 1.0], [0.0, 0.0, -1.0]])


def test_predictions_by_hand():
    found = Predictions.from_logits(LOGITS, torch.tensor([0, 1]))
    assert found.classes.tolist() == [0, 0]
    assert found.correct.tolist() == [True, False]
    e = torch.exp(torch.tensor(1.0))
    assert torch.allclose(found.confidences, torch.stack([e**2 / (e**2 + 1 + e), 1 / (2 + 1 / e)]))


def test_probabilities_and_their_logits_are_the_same_predictions():
    a = Predictions.from_logits(LOGITS, torch.tensor([0, 1]))
    b = Predictions.from_probabilities(LOGITS.softmax(1), torch.tensor([0, 1]))
    assert torch.allclose(a.log_probabilities, b.log_probabilities, atol=1e-6)


def test_a_probability_of_zero_is_allowed():
    found = Predictions.from_probabilities(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    assert found.confidences.tolist() == [1.0]
    assert torch.isfinite(found.log_probabilities).all()


def test_some_of_the_images():
    found = Predictions.from_logits(LOGITS, torch.tensor([0, 1]), indices=torch.tensor([10, 11]))[torch.tensor([1])]
    assert (len(found), found.indices.tolist(), found.labels.tolist()) == (1, [11], [1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Predictions.from_logits(LOGITS, torch.tensor([0, 3])), "labels must be in 0 to 2, got 0 to 3"),
        (lambda: Predictions.from_logits(LOGITS, torch.tensor([0.0, 1.0])), "labels must be whole numbers"),
        (lambda: Predictions.from_logits(LOGITS, torch.tensor([0])), "one for each of 2 images"),
        (lambda: Predictions.from_logits(LOGITS / 0, torch.tensor([0, 1])), "2 of 2 images have NaN or infinity"),
        (lambda: Predictions.from_logits(LOGITS[0], torch.tensor([0])), "images x classes"),
        (lambda: Predictions.from_probabilities(LOGITS, torch.tensor([0, 1])), "sum to 1"),
        (lambda: check_images(torch.rand(2, 3, 4, 4) * 2), r"images must be in \[0, 1\]"),
        (lambda: check_images(torch.full((1, 1, 2, 2), torch.nan)), r"images must be in \[0, 1\], got nan"),
        (lambda: check_images(torch.zeros(3, 4, 4)), "batch x channels"),
        (lambda: check_images(torch.zeros(1, 3, 4, 4, dtype=torch.uint8)), "floating point"),
        (lambda: check_labels(torch.tensor([True]), 2, 1), "whole numbers"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(SurefootError, match=message):
        make()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.uint16, torch.uint32, torch.uint64])
def test_labels_of_any_whole_type(dtype):
    found = Predictions.from_logits(LOGITS, torch.tensor([0, 2]).to(dtype))
    assert (found.labels.tolist(), found.labels.dtype) == ([0, 2], torch.int64)
    with pytest.raises(SurefootError, match="labels must be in 0 to 2, got 0 to 3"):
        Predictions.from_logits(LOGITS, torch.tensor([0, 3]).to(dtype))


def test_estimate_is_a_float_with_an_interval():
    found = Estimate(0.5, 0.4, 0.6)
    assert found < 0.51
    assert repr(found) == "0.5 [0.4, 0.6]"
    assert pickle.loads(pickle.dumps(found)).high == 0.6
