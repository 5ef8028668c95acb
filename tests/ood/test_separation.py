"""AUROC, AUPR and FPR against scikit-learn, intervals against the truth, and the joint risk by hand."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

import surefoot as sf
from surefoot.ood._separation import Ledger, joint_risk, least_foreign


def by_scikit_learn(known, foreign):
    scores, is_foreign = np.concatenate([known, foreign]), np.arange(len(known) + len(foreign)) >= len(known)
    fpr, tpr, _ = roc_curve(~is_foreign, -scores, drop_intermediate=False)
    return {
        "auroc": roc_auc_score(is_foreign, scores),
        "aupr_foreign": average_precision_score(is_foreign, scores),
        "aupr_known": average_precision_score(~is_foreign, -scores),
        "fpr95": fpr[np.argmax(tpr >= 0.95)],
    }


@pytest.mark.parametrize("digits", [6, 1, 0])
@pytest.mark.parametrize("sizes", [(200, 70), (40, 300), (1, 1)])
def test_values_are_those_of_scikit_learn_with_ties_too(digits, sizes):
    random = np.random.default_rng(digits)
    known, foreign = random.normal(size=sizes[0]).round(digits), random.normal(0.8, 1.5, size=sizes[1]).round(digits)
    found = sf.ood.separation(known, foreign, intervals=40)
    for name, value in by_scikit_learn(known, foreign).items():
        assert float(getattr(found, name)) == pytest.approx(value, abs=1e-12), name


def test_intervals_hold_the_truth_in_most_draws():
    """Two normals one apart: AUROC is Phi(1 / sqrt 2)."""
    truth, inside = 0.7602499, 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        found = sf.ood.separation(random.normal(size=80), random.normal(1, 1, size=60), seed=seed, intervals=300)
        inside += found.auroc.low <= truth <= found.auroc.high
    assert 178 <= inside <= 199  # of 190 expected, four deviations of a binomial share


def test_a_difference_is_paired():
    random = np.random.default_rng(0)
    known, foreign = random.normal(size=300), random.normal(1, 1, size=300)
    first = sf.ood.separation(known, foreign)
    second = sf.ood.separation(known + random.normal(size=300) * 0.05, foreign + random.normal(size=300) * 0.05)
    assert first.minus(first) == 0
    assert first.minus(first).low == first.minus(first).high == 0
    difference = first.minus(second)
    assert difference.high - difference.low < (first.auroc.high - first.auroc.low) / 3


def test_perfect_and_worst_scores():
    known, foreign = np.arange(20.0), np.arange(20.0) + 100
    found = sf.ood.separation(known, foreign)
    assert (found.auroc, found.aupr_foreign, found.aupr_known, found.fpr95) == (1, 1, 1, 0)
    assert found.fpr95.high > 0.1  # Wilson's, with 20 foreign pictures
    assert sf.ood.separation(foreign, known).auroc == 0


@pytest.mark.parametrize(("known", "foreign"), [([], [1.0]), ([1.0], []), ([np.nan], [1.0]), ([1.0], [np.inf])])
def test_nothing_to_separate_is_refused(known, foreign):
    with pytest.raises(ValueError, match="must be"):
        sf.ood.separation(np.array(known), np.array(foreign))


def test_joint_risk_by_hand():
    """Of 10 known pictures 8 are answered, 2 of them wrongly; of 5 foreign ones 1 passes."""
    wrong = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], dtype=bool)
    answered = np.array([1, 1, 0, 1, 1, 1, 1, 1, 1, 0], dtype=bool)
    passed = np.array([1, 0, 0, 0, 0], dtype=bool)
    risks = Ledger(wrong, answered, passed).risks((0, 0.5, 1))
    assert float(risks["0"]) == pytest.approx(2 / 8)
    assert float(risks["0.5"]) == pytest.approx((0.5 * 0.2 + 0.5 * 0.2) / (0.5 * 0.8 + 0.5 * 0.2))
    assert float(risks["1"]) == 1
    assert risks["0"].low < 0.25 < risks["0"].high
    assert np.isnan(joint_risk(np.array(0.0), np.array(0.0), np.array(0.0), 0.5))


def test_the_least_foreign_are_answered():
    known, foreign = np.array([0.1, 0.4, 0.2, 0.3]), np.array([0.15, 0.25, 0.9])
    ours, theirs = least_foreign(known, foreign, 0.5)
    assert ours.tolist() == [True, False, True, False]
    assert theirs.tolist() == [True, False, False]
    ours, theirs = least_foreign(known, foreign, 0.0)
    assert not ours.any()
    assert not theirs.any()
