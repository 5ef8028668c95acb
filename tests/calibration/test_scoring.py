import logging
from functools import cache

import definitions
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, roc_auc_score, top_k_accuracy_score

from surefoot.calibration import Predictions, difference, reliability, scores
from surefoot.calibration.bins import bin_of, smooth_ece
from surefoot.calibration.bootstrap import calibrated_ece, drawn_copies, estimate, norm_estimate
from surefoot.calibration.per_image import PerImage, per_image
from surefoot.calibration.scoring import BY_CLASS, MANY, NAMES, estimates, samples, samples_of_many
from surefoot.errors import SurefootError, UnknownName


def random_predictions(count, classes, seed, sharpness=3.0, dtype=torch.float64):
    """Labels that follow the logits loosely, so that some answers are right."""
    draws = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, classes, generator=draws, dtype=dtype) * sharpness
    labels = torch.multinomial((logits / 2).softmax(1), 1, generator=draws).squeeze(1)
    return Predictions.from_logits(logits, labels)


def calibrated_predictions(count, classes, seed, sharpness=2.0):
    """Labels drawn from the predictions themselves."""
    draws = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, classes, generator=draws, dtype=torch.float64) * sharpness
    labels = torch.multinomial(logits.softmax(1), 1, generator=draws).squeeze(1)
    return Predictions.from_logits(logits, labels)


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.ERROR)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(2, 40), st.integers(1, 30), st.integers(0, 1000), st.sampled_from([0.3, 3.0, 12.0]))
def test_scores_against_their_definitions(count, classes, bins, seed, sharpness):
    given_ = random_predictions(count, classes, seed, sharpness)
    found = scores(given_, bins, intervals=0)
    for name, value in definitions.plain_scores(given_.logits.numpy(), given_.labels.numpy(), bins).items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-9), name
    confidences, right = given_.confidences.tolist(), given_.correct.tolist()
    if len(set(confidences)) == count:
        assert found.adaptive_ece == pytest.approx(definitions.adaptive_ece(confidences, right, bins), abs=1e-9)
    assert found.ece == reliability(given_, bins).ece


@settings(max_examples=6, deadline=None)
@given(
    st.integers(1, 10_000),
    st.sampled_from([2, 10, 300, 1000]),
    st.integers(0, 100),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_scores_of_large_sets_against_whole_tensor_formulas(count, classes, seed, dtype):
    count = min(count, 3_000_000 // classes)
    given_ = random_predictions(count, classes, seed, dtype=dtype)
    found, p = scores(given_, intervals=0), given_.logits.double().softmax(1)
    hot = torch.nn.functional.one_hot(given_.labels, classes)
    tolerance = 1e-9 if dtype == torch.float64 else 2e-6
    assert found.brier == pytest.approx(float((p - hot).square().sum(1).mean()), abs=tolerance)
    assert found.nll == pytest.approx(
        float(torch.nn.functional.cross_entropy(given_.logits.double(), given_.labels)), abs=tolerance
    )
    assert found.accuracy == float((p.argmax(1) == given_.labels).double().mean())
    assert found.brier == pytest.approx(found.brier_reliability - found.brier_resolution + found.brier_uncertainty, abs=1e-12)
    place = (p * 15).ceil().long().sub(1).clamp(0, 14)
    cells = place + 15 * torch.arange(classes)
    gaps = torch.zeros(classes * 15, dtype=torch.float64).index_add_(0, cells.view(-1), (p - hot).view(-1))
    assert found.classwise_ece == pytest.approx(float(gaps.abs().sum() / count / classes), abs=tolerance)


@pytest.mark.parametrize("seed", range(3))
def test_scores_against_scikit_learn(seed):
    given_ = random_predictions(500, 8, seed)
    found, p = scores(given_, intervals=0), given_.logits.softmax(1).numpy()
    labels = given_.labels.numpy()
    assert found.brier == pytest.approx(sum(brier_score_loss(labels == c, p[:, c]) for c in range(8)))
    assert found.auroc == pytest.approx(roc_auc_score(given_.correct.numpy(), given_.confidences.numpy()))
    assert found.top5 == pytest.approx(top_k_accuracy_score(labels, p, k=5))
    tied = Predictions.from_logits(given_.logits.round(), given_.labels)
    confidences = tied.confidences.numpy()
    assert scores(tied, intervals=0).auroc == pytest.approx(roc_auc_score(tied.correct.numpy(), confidences), abs=1e-3)


@pytest.mark.parametrize(("count", "seed"), [(1, 0), (30, 1), (150, 2)])
def test_smooth_ece_against_the_kernel_summed_image_by_image(count, seed):
    given_ = random_predictions(count, 4, seed, sharpness=4.0)
    expected = definitions.smooth_ece(given_.confidences.tolist(), given_.correct.tolist())
    assert scores(given_, intervals=0).smooth_ece == pytest.approx(expected, rel=5e-3)


def test_smooth_ece_of_a_draw_does_not_depend_on_the_others():
    """Where a draw's width is looked for first depends on the draws before it; which one is found does not."""
    given_ = per_image(random_predictions(40, 4, 3, sharpness=4.0), 15)
    weights = torch.poisson(torch.ones(200, 40)).double().numpy()
    together = smooth_ece(given_.confidences, given_.correct, weights)
    assert together.tolist() == [smooth_ece(given_.confidences, given_.correct, row[None])[0] for row in weights]
    assert len(set(together.tolist())) == 200


def test_values_by_hand():
    probabilities = torch.tensor([[0.8, 0.2], [0.6, 0.4], [0.9, 0.1], [0.3, 0.7]], dtype=torch.float64)
    found = scores(Predictions.from_probabilities(probabilities, torch.tensor([0, 1, 0, 1])), bins=10)
    assert found.accuracy == 0.75
    assert found.top5 == 1
    assert found.ece == pytest.approx((0.2 + 0.6 + 0.1 + 0.3) / 4)
    assert found.max_error == pytest.approx(0.6)
    assert found.rms == pytest.approx(np.sqrt((0.04 + 0.36 + 0.01 + 0.09) / 4))
    assert found.signed_error == pytest.approx((-0.2 + 0.6 - 0.1 - 0.3) / 4)
    assert found.nll == pytest.approx(-np.log([0.8, 0.4, 0.9, 0.7]).mean())
    assert found.brier == pytest.approx(2 * (0.04 + 0.36 + 0.01 + 0.09) / 4)
    assert found.brier_uncertainty == pytest.approx(0.5)
    assert found.auroc == 1.0  # its one mistake is its least confident answer
    assert found.aurc == pytest.approx((0 + 0 + 0 + 1 / 4) / 4)


def test_ties_have_no_order():
    """Half of four equally confident answers are wrong: the risk is one half at every coverage, and no mistake is spotted."""
    given_ = Predictions.from_probabilities(torch.tensor([[0.75, 0.25]] * 4), torch.tensor([0, 1, 1, 0]))
    found = scores(given_, intervals=0)
    assert (found.aurc, found.auroc) == (0.5, 0.5)
    assert found.adaptive_ece == pytest.approx(0.25)
    constant = scores(Predictions.from_logits(torch.zeros(10, 10), torch.arange(10)), intervals=0)
    assert (constant.accuracy, constant.top5) == (0.1, 0.5)


def test_certain_answers():
    """A wrong and certain answer costs what the smallest number allows, and confidence 1 counts in the last bin."""
    certain = Predictions.from_logits(torch.tensor([[1000.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))
    found = scores(certain, intervals=0)
    assert found.nll == pytest.approx(250)
    assert found.ece == found.max_error == found.adaptive_ece == 0.25
    assert found.brier == pytest.approx(0.5)


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 500), st.integers(2, 20), st.integers(0, 100))
def test_order_does_not_matter(count, classes, seed):
    found = random_predictions(count, classes, seed)
    rounded = Predictions.from_logits(found.logits.round(), found.labels)  # with ties
    turned = rounded[torch.randperm(count, generator=torch.Generator().manual_seed(seed))]
    one, two = scores(rounded, intervals=0), scores(turned, intervals=0)
    assert [getattr(one, n) for n in NAMES] == pytest.approx([getattr(two, n) for n in NAMES], abs=1e-9, nan_ok=True)
    assert one.ece == two.ece  # to the bit, as the sums are whole numbers


def test_batches_give_what_the_whole_gives():
    found = random_predictions(1000, 12, 0)
    parts = [found[start : start + 170] for start in range(0, 1000, 170)]
    one, two = scores(found, intervals=50), scores(parts, intervals=50)
    for name in NAMES:
        a, b = getattr(one, name), getattr(two, name)
        assert (a, a.low, a.high) == pytest.approx((b, b.low, b.high), abs=1e-9), name
    assert scores(iter(parts), intervals=0).nll == pytest.approx(one.nll, abs=1e-12)
    with pytest.raises(SurefootError, match="can be read only once"):
        scores(iter(parts), intervals=10)


def test_every_bootstrap_draw_is_the_score_of_the_drawn_images():
    found = random_predictions(80, 6, 3)
    _, draws = samples(found, per_image(found, 7), NAMES, 7, 5, seed=4)
    for number, copies in enumerate(np.concatenate(list(drawn_copies(80, 4, 5)))):
        drawn = found[torch.arange(80).repeat_interleave(torch.from_numpy(copies).long())]
        again = scores(drawn, 7, intervals=0)
        for name in NAMES:
            assert float(draws[name][number]) == pytest.approx(getattr(again, name), abs=1e-9, nan_ok=True), name


@pytest.mark.parametrize("name", NAMES)
def test_one_score_alone_is_what_it_is_among_all(name):
    found = random_predictions(60, 5, 1)
    alone, among = estimates(found, [name], intervals=20)[name], getattr(scores(found, intervals=20), name)
    assert (alone, alone.low, alone.high) == pytest.approx((among, among.low, among.high), abs=1e-12)


def test_an_interval_is_from_the_2_5_to_the_97_5_percentile():
    found = estimate(0.4, np.arange(1001) / 1000)
    assert (found, found.low, found.high) == pytest.approx((0.4, 0.025, 0.975))
    with_gaps = estimate(0.2, [0.1, float("nan"), 0.3])  # a draw without mistakes has no AUROC
    assert (with_gaps.low, with_gaps.high) == pytest.approx((0.105, 0.295))


@pytest.mark.parametrize("right", [True, False])
def test_all_or_none_right_is_no_certainty(right):
    """Wilson by hand: 100 of 100 are at least 100 / (100 + 1.96^2)."""
    logits = torch.tensor([[1.0, 0.0]] if right else [[0.0, 1.0]]).repeat(100, 1)
    accuracy = scores(Predictions.from_logits(logits, torch.zeros(100, dtype=torch.long))).accuracy
    end = 100 / (100 + 1.959964**2)
    assert (accuracy.low, accuracy.high) == pytest.approx((end, 1.0) if right else (0.0, 1 - end))


def test_intervals_have_their_coverage():
    """A 95 % interval for the accuracy holds the truth in about 95 % of data sets."""
    hits = 0
    for seed in range(200):
        draws = torch.Generator().manual_seed(seed)
        right = torch.rand(200, generator=draws) < 0.8
        logits = torch.stack([right.double(), 1 - right.double()], 1)
        given_ = Predictions.from_logits(logits, torch.zeros(200, dtype=torch.long))
        accuracy = estimates(given_, ["accuracy"], intervals=300, seed=seed)["accuracy"]
        hits += accuracy.low <= 0.8 <= accuracy.high
    assert 180 <= hits <= 198


def test_a_paired_difference_is_sharper_than_two_intervals():
    first = random_predictions(400, 5, 0)
    second = Predictions.from_logits(first.logits * 1.1, first.labels)
    found = difference(first, second, seed=1)
    assert found["accuracy"] == found["accuracy"].low == found["accuracy"].high == 0
    one, two = scores(first, seed=1), scores(second, seed=1)
    assert found["nll"] == pytest.approx(one.nll - two.nll)
    assert found["nll"].high - found["nll"].low < (one.nll.high - one.nll.low) / 3
    with pytest.raises(SurefootError, match="the same images, and .* of 400 have other labels"):
        difference(first, second[torch.arange(399, -1, -1)])
    with pytest.raises(SurefootError, match="the same images, and these are 400 and 399"):
        difference(first, second[:399])
    with pytest.raises(UnknownName, match="Unknown score 'eec'. Did you mean 'ece'?"):
        difference(first, second, names=["eec"])


def placed(found, indices):
    return Predictions.from_logits(found.logits, found.labels, indices=torch.as_tensor(indices))


def test_a_difference_is_of_the_same_images(caplog):
    found = random_predictions(40, 3, 0)
    here, again, moved = (placed(found, torch.arange(40) + k) for k in (0, 0, 1))
    assert difference(here, again, names=["accuracy"], intervals=0)["accuracy"] == 0
    assert difference(found, moved, names=["accuracy"], intervals=0)["accuracy"] == 0  # one does not know its places
    for second in (moved, [moved[:10], moved[10:]]):
        with pytest.raises(SurefootError, match="the same images, and .* of 39 have other labels"):
            difference(here, second, names=["accuracy"], intervals=0)
    with pytest.raises(SurefootError, match="of 40 and 40 indices none is in both"):
        difference(here, placed(found, torch.arange(40) + 40), names=["accuracy"], intervals=0)


def test_a_difference_pairs_by_indices_whatever_the_order_and_on_the_images_that_both_have(caplog):
    caplog.set_level(logging.WARNING)
    first = placed(random_predictions(60, 4, 0), torch.arange(60) * 7 + 3)
    second = Predictions.from_logits(first.logits * 1.3, first.labels, indices=first.indices)
    turned = second[torch.randperm(60, generator=torch.Generator().manual_seed(0))]
    run = {"bins": 5, "intervals": 40, "seed": 2}
    one, two = difference(first, second, **run), difference(first, turned, **run)
    assert not caplog.records
    common = difference(first[10:50], second[10:50], **run)
    part = difference(first[:50], [turned[turned.indices >= 73][:20], turned[turned.indices >= 73][20:]], **run)
    assert caplog.records[-1].getMessage() == "The difference is of the 40 images that both have, of 50 and 50."
    for name in NAMES:
        for same, other in ((one[name], two[name]), (common[name], part[name])):
            expected = (same, same.low, same.high)
            assert (other, other.low, other.high) == pytest.approx(expected, abs=1e-9, nan_ok=True), name


def columns_of(found, bins, ids=None):
    """PerImage from plain columns, computed apart from the package."""
    p, labels = definitions.softmax(found.logits.numpy()), found.labels.numpy()
    own = p[np.arange(len(p)), labels]
    squares = np.square(p - np.eye(p.shape[1])[labels]).sum(1)
    return PerImage.from_columns(p.max(1), p.argmax(1) == labels, -np.log(own), squares, labels, ids, bins)


def test_scores_from_columns_alone_are_those_from_logits():
    found = placed(random_predictions(120, 5, 0), torch.arange(120) * 3 + 1)
    columns, names = columns_of(found, 9, found.indices.numpy()), [name for name in NAMES if name not in BY_CLASS | {"top5"}]
    expected = estimates(found, names, 9, intervals=40, seed=3)
    for name, value in estimates(None, names, 9, intervals=40, seed=3, per_image=columns).items():
        same = expected[name]
        assert (value, value.low, value.high) == pytest.approx((same, same.low, same.high), abs=1e-9), name
    for name in BY_CLASS | {"top5"}:
        for draws in (0, 10):
            with pytest.raises(SurefootError, match=f"{name} must be computed from logits"):
                estimates(None, [name], 9, intervals=draws, per_image=columns)
    with pytest.raises(SurefootError, match="classwise_ece must be computed from logits"):
        estimates(None, ["classwise_ece"], 9, per_image=per_image(found, 9))
    with pytest.raises(SurefootError, match="bins must be 9"):
        estimates(None, ["ece"], per_image=columns)
    with pytest.raises(SurefootError, match="predictions must be given"):
        estimates(None, ["ece"])


def test_bad_columns():
    good = [[0.5, 0.6], [True, False], [0.1, 0.2], [0.3, 0.4], [0, 1]]
    assert PerImage.from_columns(*good, ids=None, bins=3).ids.tolist() == [0, 1]
    for place, name in enumerate(("correct", "losses", "squares", "labels"), 1):
        with pytest.raises(SurefootError, match=f"{name} must be one for each of 2 images, got 1"):
            PerImage.from_columns(*(column[: 1 + (k != place)] for k, column in enumerate(good)), ids=None, bins=3)
    with pytest.raises(SurefootError, match="ids must be one for each of 2 images, got 3"):
        PerImage.from_columns(*good, ids=[1, 2, 3], bins=3)
    with pytest.raises(SurefootError, match="ids must be one whole number for each image"):
        PerImage.from_columns(*good, ids=[1.0, 2.0], bins=3)
    with pytest.raises(SurefootError, match="of at least one image"):
        PerImage.from_columns([], [], [], [], [], ids=None, bins=3)


@pytest.mark.parametrize("names", [MANY, ("nll",), ("ece",), ("rms", "accuracy")])
@pytest.mark.parametrize("draws", [0, 30])
def test_samples_of_many_conditions_are_those_of_each(names, draws, monkeypatch):
    monkeypatch.setattr("surefoot.calibration.scoring.TOGETHER", 2)
    ids = torch.arange(70) * 5
    predictions = [placed(random_predictions(70, 4, seed), ids) for seed in range(5)]
    items = [per_image(predictions[0], 6), *(columns_of(found, 6, ids.numpy()) for found in predictions[1:])]
    for found, item in zip(samples_of_many(items, names, 6, draws, 3), items, strict=True):
        points, drawn = samples(None, item, names, 6, draws, 3)
        assert found[1].keys() == drawn.keys()
        for name in names:
            assert found[0][name] == pytest.approx(points[name], abs=1e-12)
        for name in drawn:
            assert found[1][name] == pytest.approx(drawn[name], abs=1e-12)


def test_samples_of_many_refuses_other_images_and_scores():
    items = [per_image(placed(random_predictions(20, 3, 0), torch.arange(20) + k), 15) for k in (0, 1)]
    with pytest.raises(SurefootError, match="their ids differ"):
        samples_of_many(items, ["ece"], 15, 10, 0)
    with pytest.raises(UnknownName, match="Unknown score of many conditions 'aurc'"):
        samples_of_many(items[:1], ["aurc"], 15, 10, 0)
    assert samples_of_many([], ["ece"], 15, 10, 0) == []


def test_the_band_holds_a_calibrated_model_in_95_percent_of_cases_and_not_a_sharpened_one():
    inside = outside = 0
    for seed in range(150):
        true = calibrated_predictions(400, 5, seed)
        found = scores(true, intervals=250, seed=seed) if seed < 10 else None
        band = found.ece_if_calibrated if found else band_of(true, seed)
        inside += band[0] <= reliability(true).ece <= band[1]
        outside += reliability(Predictions.from_logits(true.logits * 3, true.labels)).ece > band[1]
    assert 135 <= inside <= 149
    assert outside == 150


def band_of(given_, seed):
    confidences = given_.confidences.double()
    membership = np.eye(15)[bin_of(confidences, 15)]
    return np.quantile(calibrated_ece(confidences, membership, seed, 250), [0.025, 0.975]).tolist()


@pytest.mark.parametrize(("count", "classes"), [(150, 3), (1000, 10)])
def test_debiased_ece_is_near_zero_for_a_calibrated_model(count, classes):
    plain, debiased = [], []
    for seed in range(200):
        table = reliability(calibrated_predictions(count, classes, seed))
        plain.append(table.ece)
        debiased.append(table.debiased_ece)
    error = np.std(debiased) / np.sqrt(200)
    assert abs(np.mean(debiased)) < max(3 * error, 0.06 * np.mean(plain))
    assert np.mean(plain) > 5 * abs(np.mean(debiased))


def test_debiased_ece_keeps_a_gap_that_is_there():
    """Confidence 0.9, right in 70 % of cases: 0.2, for few images too."""
    draws = np.random.default_rng(0)
    found = []
    for _ in range(300):
        right = draws.random(60) < 0.7
        p = torch.tensor([[0.9, 0.1]] * 60, dtype=torch.float64)
        found.append(reliability(Predictions.from_probabilities(p, torch.tensor((~right).astype(int)))).debiased_ece)
    assert np.mean(found) == pytest.approx(0.2, abs=0.01)


def test_seeded():
    found = random_predictions(100, 3, 0)
    assert scores(found, seed=1) == scores(found, seed=1)
    assert scores(found, seed=1).ece.low != scores(found, seed=2).ece.low
    without = scores(found, intervals=0)
    assert without.ece == scores(found, seed=1).ece
    assert np.isnan([without.ece.low, without.ece_if_calibrated[0]]).all()


def test_always_right_has_nothing_to_spot():
    found = scores(Predictions.from_logits(torch.eye(3) * 4, torch.arange(3)), intervals=20)
    assert np.isnan(found.auroc)
    assert found.aurc == 0


def test_bad_input(caplog):
    with pytest.raises(SurefootError, match="bins must be at least 1, got 0"):
        scores(random_predictions(10, 3, 0), bins=0)
    with pytest.raises(SurefootError, match="bins must be at least 1, got 0"):
        reliability(random_predictions(10, 3, 0), bins=0)
    empty = random_predictions(1, 3, 0)[torch.tensor([], dtype=torch.long)]
    for nothing in (empty, [], [empty]):
        with pytest.raises(SurefootError, match="of at least one image"):
            scores(nothing)
    with pytest.raises(SurefootError, match="intervals must be a number of draws"):
        scores(random_predictions(10, 3, 0), intervals=-1)
    with pytest.raises(SurefootError, match="the same classes in every batch, got 3 and 4"):
        scores([random_predictions(10, 3, 0), random_predictions(10, 4, 0)])


def test_a_class_that_never_occurs_is_said_in_one_line(caplog):
    caplog.set_level(logging.WARNING)
    given_ = Predictions.from_logits(torch.zeros(3, 4, dtype=torch.float64), torch.tensor([0, 1, 3]))
    assert scores(given_, intervals=0).classwise_ece == pytest.approx((3 * (1 / 3 - 1 / 4) + 1 / 4) / 4)
    assert [r.getMessage().split(";")[0] for r in caplog.records] == ["1 of 4 classes never occur among the labels (first: 2)"]


def confidences(draws, count):
    return 1 - 0.9 * draws.beta(1, 4, count)


@cache
def true_error(gap):
    """The binned error of the population whose confidence is above its accuracy by a gap."""
    many = confidences(np.random.default_rng(0), 4_000_000)
    bins = np.minimum((many * 15).astype(int), 14)
    return np.abs(np.bincount(bins, many - np.clip(many - gap(many), 0, 1), 15)).sum() / len(many)


def simulated(images, gap, seed):
    """Predictions that are right with the probability of their confidence less a gap."""
    draws = np.random.default_rng(seed)
    sure = torch.from_numpy(confidences(draws, images))
    right = torch.from_numpy(draws.random(images)) < sure - torch.from_numpy(gap(sure.numpy()))
    others = ((1 - sure) / 9).unsqueeze(1).expand(-1, 9)
    probabilities = torch.cat([sure.unsqueeze(1), others], 1)
    return Predictions.from_probabilities(probabilities, torch.where(right, 0, 1))


GAPS = {  # confidence minus accuracy
    "none": lambda c: 0 * c,
    "a hundredth": lambda c: 0.01 * c,
    "a fiftieth": lambda c: 0.02 * c,
    "both signs": lambda c: 0.03 * np.sign(np.sin(12 * c)),
    "one bin": lambda c: np.where(c > 14 / 15, 0.05, 0.0),
    "0.04": lambda c: 0.04 + 0 * c,
    "a tenth": lambda c: 0.1 * c,
}
LOST = ("none", "a hundredth")  # far below the noise of so many images: such intervals may cover more often


@pytest.mark.parametrize("images", [500, 2000])
@pytest.mark.parametrize("gap", GAPS)
def test_an_interval_of_ece_contains_it(gap, images):
    """And that of its kin: the bootstrap alone lies above them."""
    for seed in range(3):
        predictions = simulated(images, GAPS[gap], seed)
        for name, found in estimates(predictions, NAMES, intervals=200).items():
            assert found.low <= found <= found.high, name


@pytest.mark.stress
@pytest.mark.parametrize("images", [500, 2000])
@pytest.mark.parametrize("gap", GAPS)
def test_intervals_of_ece_have_their_coverage(gap, images):
    """The truth is the population's error with the same bins, in 1,000 sets."""
    hits = 0
    for seed in range(1000):
        found = estimates(simulated(images, GAPS[gap], seed), ["ece"], intervals=500, seed=seed)["ece"]
        hits += found.low <= true_error(GAPS[gap]) <= found.high
    print(f"{gap}, {images} images: {hits} of 1000")
    assert hits >= 930
    assert hits <= 970 or gap in LOST or images == 500


def test_an_interval_contains_its_estimate_also_where_all_draws_are_beside_it():
    found = estimate(0.4, torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64))  # a tensor of the caller's
    assert (found.low, found.high) == pytest.approx((0.105, 0.4))


def test_no_interval_of_a_gap_goes_above_one():
    """A bin of two sure mistakes: its gap may be doubled by the test that is inverted, and is a share all the same."""
    sure = torch.tensor([[0.9, 0.1]] * 2 + [[0.6, 0.4]] * 60)
    labels = torch.tensor([1, 1] + [0, 0, 0, 1, 1] * 12)
    found = scores(Predictions.from_probabilities(sure, labels), intervals=200)
    assert found.max_error == pytest.approx(0.9)
    for name in ("max_error", "rms", "ece", "adaptive_ece", "debiased_ece"):
        assert getattr(found, name).high <= 1, name


def test_the_interval_of_a_norm_by_hand():
    """One gap far above its noise: 1.96 deviations to each side. Gaps that may be noise alone: one side has all of the 5 %."""
    noise = np.random.default_rng(0).standard_normal((4000, 400))
    one = norm_estimate(np.array([20.0]), 20 + noise[:, :1], lambda gaps: np.abs(gaps).sum(-1))
    assert (one.low, one, one.high) == pytest.approx((18.04, 20, 21.96), abs=0.1)
    for level, is_zero in ((0.94, True), (0.96, False)):
        gaps = np.full(400, np.quantile(np.abs(noise).sum(1), level) / 400)
        found = norm_estimate(gaps, gaps + noise, lambda gaps: np.abs(gaps).sum(-1))
        assert (found.low == 0) is is_zero
        assert found.high == found
