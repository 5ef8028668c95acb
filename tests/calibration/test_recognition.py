"""Scores that weigh classes alike, against scikit-learn, and what an answer without looking reaches."""

import numpy as np
import pytest
import torch
from sklearn import metrics

from surefoot.calibration.recognition import recognition
from surefoot.types import Predictions


def predictions(labels, answers, classes):
    logits = torch.nn.functional.one_hot(torch.as_tensor(answers), classes) * 3.0
    return Predictions.from_logits(logits, torch.as_tensor(labels))


def drawn(seed, images=400, classes=5):
    random = np.random.default_rng(seed)
    labels = random.choice(classes, images, p=np.array([8, 4, 2, 1, 1]) / 16)
    answers = np.where(random.random(images) < 0.6, labels, random.choice(classes, images))
    return labels, answers


@pytest.mark.parametrize("seed", range(3))
def test_against_scikit_learn(seed):
    labels, answers = drawn(seed)
    found = recognition(predictions(labels, answers, 5), "abcde", seed=seed)
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(labels, answers), abs=1e-12)
    assert found.macro_f1 == pytest.approx(metrics.f1_score(labels, answers, average="macro"), abs=1e-12)
    assert found.matthews == pytest.approx(metrics.matthews_corrcoef(labels, answers), abs=1e-12)
    counts = np.bincount(labels)
    assert (found.chance, found.majority) == (counts.max() / 400, "abcde"[counts.argmax()])
    for score in (found.balanced_accuracy, found.macro_f1, found.matthews):
        assert score.low < score < score.high


def test_a_draw_is_the_score_of_the_drawn_images():
    """The interval is that of scikit-learn's score over the same copies of images."""
    from surefoot.calibration.bootstrap import drawn_copies

    labels, answers = drawn(3, images=60)
    found = recognition(predictions(labels, answers, 5), "abcde", intervals=200)
    weights = np.concatenate(list(drawn_copies(60, 0, 200))).astype(int)
    scores = [metrics.matthews_corrcoef(np.repeat(labels, each), np.repeat(answers, each)) for each in weights]
    assert (found.matthews.low, found.matthews.high) == pytest.approx(np.quantile(scores, [0.025, 0.975]), abs=1e-12)


def test_a_constant_answer():
    labels = np.repeat([0, 1, 2], [893, 89, 18])
    found = recognition(predictions(labels, np.zeros(1000, dtype=int), 3), ["cat", "dog", "cow"])
    assert (found.balanced_accuracy, found.matthews, found.chance) == (1 / 3, 0.0, 0.893)
    assert (found.majority, found.commonest_answer, found.commonest_share) == ("cat", "cat", 1.0)


def test_a_class_without_images_does_not_count_and_chance_is_at_least_one_of_k():
    found = recognition(predictions([0, 1, 0, 1], [0, 1, 1, 1], 4), "abcd", intervals=0)
    assert found.balanced_accuracy == 0.75
    assert found.chance == 0.5
    even = recognition(predictions([0, 1, 2, 3], [0, 0, 0, 0], 4), "abcd", intervals=0)
    assert even.chance == 0.25
