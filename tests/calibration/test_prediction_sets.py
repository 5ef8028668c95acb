import math
import statistics

import numpy as np
import plain_conformal as plain
import pytest
import torch
from definitions import softmax
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom
from test_scoring import random_predictions

from surefoot.calibration import PredictionSets, cross_fit_prediction_sets, fit_prediction_sets, fit_temperature
from surefoot.calibration.disjoint import parted, uniform_by_image
from surefoot.calibration.prediction_sets import (
    Score,
    conformal_quantile,
    cumulative_scores,
    least_images,
    quantile_rank,
    regularised,
)
from surefoot.calibration.set_scores import set_scores
from surefoot.errors import SurefootError
from surefoot.types import Predictions

OPTIONS = {"lac": {}, "aps": {}, "raps": {"weight": 0.1, "rank": 2}}


def drawn(images, classes, seed, sharpness=1.7, start=0):
    """Labels follow softmax(z), and the model says softmax(sharpness z): a temperature is worth fitting."""
    draws = torch.Generator().manual_seed(seed)
    z = torch.randn(images, classes, generator=draws) * 2
    labels = torch.multinomial(z.softmax(1), 1, generator=draws).squeeze(1)
    return Predictions.from_logits(sharpness * z, labels, indices=torch.arange(start, start + images))


@pytest.fixture
def one_thread():
    """Thousands of small fits are quicker on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(0, 1000), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.123]))
def test_quantile_is_the_rank_of_the_definition(count, seed, coverage):
    scores = np.random.default_rng(seed).random(count)
    assert conformal_quantile(torch.from_numpy(scores), coverage) == plain.quantile(scores.tolist(), coverage)


def test_ranks_by_hand():
    assert [quantile_rank(n, 0.9) for n in (8, 9, 10, 19, 99, 999)] == [9, 9, 10, 18, 90, 900]
    assert quantile_rank(99, 0.29) == 29  # 100 * 0.29 is 28.999999999999996 in floating point
    assert quantile_rank(99, 0.07) == 7  # and 100 * 0.07 is 7.000000000000001
    assert [least_images(c) for c in (0.5, 0.9, 0.95, 0.99)] == [1, 9, 19, 99]
    for coverage in (0.5, 0.9, 0.95, 0.99):
        least = least_images(coverage)
        assert quantile_rank(least, coverage) <= least
        assert quantile_rank(least - 1, coverage) > least - 1


def test_scores_by_hand():
    p = torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64)
    assert Score(score="lac").of(p.log()).tolist()[0] == pytest.approx([0.8, 0.5, 0.7])
    assert cumulative_scores(p, torch.tensor([0.5])).tolist()[0] == pytest.approx([0.9, 0.25, 0.65])
    assert Score(score="aps").of(p.log()).tolist()[0] == pytest.approx([1.0, 0.5, 0.8])
    assert Score(score="raps", weight=0.1, rank=1).of(p.log()).tolist()[0] == pytest.approx([1.2, 0.5, 0.9])
    tied = torch.tensor([[0.25, 0.5, 0.25]], dtype=torch.float64)
    assert cumulative_scores(tied, torch.tensor([1.0])).tolist()[0] == [0.75, 0.5, 1.0]  # the earlier comes first
    many = cumulative_scores(torch.full((3, 1000), 0.001, dtype=torch.float64), torch.ones(3))
    assert (many.diff(dim=1) > 0).all()


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("score", OPTIONS)
def test_sets_against_the_papers(score, by_class):
    fitted_on, others = drawn(150, 4, 0), drawn(60, 4, 1, start=1000)
    found = fit_prediction_sets(fitted_on, 0.85, score, by_class=by_class, temperature=1.7, seed=5, **OPTIONS[score])
    scores = {
        "lac": lambda row, label, u: plain.lac_score(row, label),
        "aps": lambda row, label, u: plain.aps_score(row, label, 1 - u),  # the paper leaves out with small u
        "raps": lambda row, label, u: plain.raps_score(row, label, u, 0.1, 2),
    }
    rows, labels = softmax(fitted_on.logits / 1.7), fitted_on.labels.tolist()
    u = uniform_by_image(np.arange(150), 5, "calibration scores")
    own = [scores[score](row, label, each) for row, label, each in zip(rows, labels, u, strict=True)]
    groups = [[s for s, label in zip(own, labels, strict=True) if label == c] for c in range(4)] if by_class else [own]
    bounds = [plain.quantile(group, 0.85) for group in groups]
    assert found.thresholds.tolist() == pytest.approx(bounds, abs=1e-6)
    sets = found.apply(others.logits, others.indices)
    u = uniform_by_image(np.arange(1000, 1060), 5, "prediction sets")
    for row, each, mine in zip(softmax(others.logits / 1.7), u, sets, strict=True):
        there = {c for c in range(4) if scores[score](row, c, each) <= bounds[c if by_class else 0]}
        assert set(mine.nonzero().flatten().tolist()) == there
        if score == "aps" and not by_class:
            assert there == plain.aps_set(row, bounds[0], 1 - each)
    assert sets.shape == (60, 4)
    assert sets.dtype == torch.bool
    assert (found.images, found.tuned_on, found.by_class, found.note) == (150, 0, by_class, "")


@pytest.mark.parametrize("score", OPTIONS)
def test_no_image_serves_twice(score):
    """What fixes the score does not move with the images of the quantile, and the quantile comes from those alone."""
    given_ = drawn(300, 4, 2)
    found = fit_prediction_sets(given_, 0.9, score, seed=3)
    first, rest = parted(given_, 0.2, 3)
    assert (len(first), len(rest)) == (60, 240) == (found.tuned_on, found.images)
    assert not set(first.indices.tolist()) & set(rest.indices.tolist())
    assert found.score.temperature == fit_temperature(first).temperature
    apart = fit_prediction_sets(rest, 0.9, score, tuning=first, seed=3)
    assert apart.score == found.score
    assert torch.equal(apart.thresholds, found.thresholds)
    changed = Predictions.from_logits(rest.logits.flip(1), rest.labels, indices=rest.indices)
    assert fit_prediction_sets(changed, 0.9, score, tuning=first, seed=3).score == found.score
    again = fit_prediction_sets(rest, 0.9, score, temperature=found.score.temperature, seed=3, **regularisation(found))
    assert torch.equal(again.thresholds, found.thresholds)
    with pytest.raises(SurefootError, match="tuning must be of other images than the predictions, and 240 of 240 are in both"):
        fit_prediction_sets(rest, 0.9, score, tuning=rest)
    for seen in (first, rest):
        with pytest.raises(SurefootError, match=f"{len(seen)} of {len(seen)} images were fitted on"):
            found.judge(seen)
    assert found.judge(rest, allow_leakage=True, intervals=0).coverage >= 0.85


def regularisation(found):
    return {"weight": found.score.weight, "rank": found.score.rank} if found.score.score == "raps" else {}


def test_raps_is_tuned_for_small_sets():
    given_ = drawn(400, 20, 0)
    base = Score(score="raps", temperature=1.7)
    found = regularised(base, given_, 0.9, None, None, 0)
    rows, labels = softmax(given_.logits), given_.labels.tolist()
    places = [plain.by_likelihood(row).index(label) + 1 for row, label in zip(rows, labels, strict=True)]
    assert found.rank == plain.quantile(places, 0.9)
    sizes = {}
    for weight in (0.001, 0.01, 0.1, 0.2, 0.5):
        table = Score(score="raps", temperature=1.7, weight=weight, rank=found.rank).of(given_.logits).numpy()
        bound = plain.quantile([row[label] for row, label in zip(table, labels, strict=True)], 0.9)
        sizes[weight] = (table <= bound).sum()
    assert sizes[found.weight] == min(sizes.values())
    assert regularised(base, given_, 0.9, 0.3, None, 0) == Score(score="raps", temperature=1.7, weight=0.3, rank=found.rank)
    assert regularised(base, given_, 0.9, None, 4, 0).rank == 4
    assert regularised(base, given_[:3], 0.9, None, None, 0).rank == 20


def test_limiting_cases():
    given_, others = drawn(200, 4, 0), drawn(50, 4, 1)
    plain_aps = fit_prediction_sets(given_, 0.9, "aps", temperature=1.0)
    unweighted = fit_prediction_sets(given_, 0.9, "raps", temperature=1.0, weight=0.0, rank=0)
    beyond = fit_prediction_sets(given_, 0.9, "raps", temperature=1.0, weight=9.0, rank=4)  # no place is past the last
    for same in (unweighted, beyond):
        assert torch.equal(same.apply(others.logits), plain_aps.apply(others.logits))
    heavy = fit_prediction_sets(given_, 0.9, "raps", temperature=1.0, weight=100.0, rank=0, randomised=False)
    top = max((given_.logits > given_.logits.gather(1, given_.labels[:, None])).sum(1).sort().values[: quantile_rank(200, 0.9)])
    sizes = heavy.apply(others.logits).sum(1)
    assert set(sizes.tolist()) <= {int(top), int(top) + 1}  # as good as the k likeliest, for one k
    sure = Predictions.from_logits(torch.eye(3).repeat(40, 1) * 50, torch.arange(3).repeat(40))
    assert fit_prediction_sets(sure, 0.9, temperature=1.0).apply(sure.logits).sum(1).eq(1).all()


def test_too_few_images_name_every_class():
    few = fit_prediction_sets(drawn(8, 3, 0), 0.9, temperature=1.0)
    assert math.isinf(few.thresholds.item())
    assert few.apply(torch.randn(5, 3)).all()
    assert few.note == "A coverage of 0.9 needs at least 9 images, and there are 8: every set has all classes."
    enough = fit_prediction_sets(drawn(9, 3, 0), 0.9, temperature=1.0)
    assert enough.note == ""
    assert enough.thresholds.item() == pytest.approx(
        max(plain.lac_score(row, y) for row, y in zip(softmax(drawn(9, 3, 0).logits), drawn(9, 3, 0).labels, strict=True))
    )
    labels = torch.tensor([0] * 30 + [1] * 8)
    rare = fit_prediction_sets(Predictions.from_logits(torch.randn(38, 3), labels), 0.9, temperature=1.0, by_class=True)
    assert rare.thresholds.isinf().tolist() == [False, True, True]
    assert rare.apply(torch.randn(20, 3))[:, 1:].all()
    assert rare.note == "2 of 3 classes have fewer than the 9 images that a coverage of 0.9 needs: every set has them."


def test_draws_belong_to_the_image():
    given_, others = drawn(300, 5, 0), drawn(80, 5, 1, start=500)
    found = fit_prediction_sets(given_, 0.8, "aps", seed=1)
    whole = found.apply(others.logits, others.indices)
    order = torch.randperm(80, generator=torch.Generator().manual_seed(0))
    assert torch.equal(found.apply(others.logits[order], others.indices[order]), whole[order])
    assert torch.equal(found.apply(others.logits[30:40], others.indices[30:40]), whole[30:40])
    assert torch.equal(found.apply(others.logits.numpy(), others.indices.numpy()), whole)
    assert not torch.equal(found.apply(others.logits), whole)  # other images
    shuffled = given_[torch.randperm(300, generator=torch.Generator().manual_seed(0))]
    assert torch.equal(fit_prediction_sets(shuffled, 0.8, "aps", seed=1).thresholds, found.thresholds)
    u, v = (uniform_by_image(100_000, 0, purpose) for purpose in ("calibration scores", "prediction sets"))
    assert 0 <= u.min() < u.max() < 1
    assert [np.mean(u), np.mean(u**2), np.corrcoef(u, v)[0, 1]] == pytest.approx([1 / 2, 1 / 3, 0], abs=0.01)


@pytest.mark.parametrize("score", OPTIONS)
def test_blocks_do_not_change_the_sets(score, monkeypatch):
    given_, others = drawn(100, 5, 0), drawn(50, 5, 1)
    found = fit_prediction_sets(given_, 0.8, score)
    whole = found.apply(others.logits)
    monkeypatch.setattr("surefoot.calibration.prediction_sets.CELLS", 35)
    assert torch.equal(found.apply(others.logits), whole)
    assert torch.equal(fit_prediction_sets(given_, 0.8, score).thresholds, found.thresholds)


def test_in_one_piece_as_an_export_computes_it():
    given_, others = drawn(200, 5, 0), drawn(50, 5, 1)
    for score in OPTIONS:
        fixed = fit_prediction_sets(given_, 0.8, score, randomised=False)
        assert torch.equal(fixed.members(others.logits), fixed.apply(others.logits))
    with pytest.raises(SurefootError, match="prediction sets must be not randomised here"):
        fit_prediction_sets(given_, 0.8, "aps").members(others.logits)


def test_cross_fitting():
    given_ = drawn(301, 4, 0)
    found = cross_fit_prediction_sets(given_, 0.9, "aps", seed=3)
    sets = found.apply(given_)
    for fold in (0, 1):
        mine = (found.folds == fold).nonzero().squeeze(1)
        assert abs(len(mine) - 150.5) <= 0.5
        assert found.fits[fold].fitted_on.overlap(given_[mine]) == 0
        assert found.fits[fold].images + found.fits[fold].tuned_on + len(mine) == 301
        assert torch.equal(sets[mine], found.fits[fold].apply(given_.logits[mine], given_.indices[mine]))
    with pytest.raises(SurefootError, match="of the 301 images of the fit, got 300"):
        found.apply(given_[:300])
    with pytest.raises(SurefootError, match="at least two images for two folds, got 1"):
        cross_fit_prediction_sets(given_[:1])


@pytest.mark.parametrize("draws", [400, pytest.param(1000, marks=pytest.mark.stress)])
@pytest.mark.parametrize("score", OPTIONS)
def test_coverage_follows_its_law_over_draws(score, draws, one_thread):
    """Many data sets: temperature and regularisation on 30 images, threshold on 60, coverage on 50 others.

    The number covered is beta-binomial: Beta(k, n + 1 - k) is the coverage given the images of the threshold.
    """
    tuned, images, judged = 30, 60, 50
    covered = np.zeros(draws, dtype=int)
    whole = drawn(draws * (tuned + images + judged), 4, 11)
    for draw in range(draws):
        own = whole[slice(draw * 140, (draw + 1) * 140)]
        sets = fit_prediction_sets(own[:90], 0.9, score, tuning=tuned / 90, seed=draw)
        assert (sets.tuned_on, sets.images) == (tuned, images)
        inside = sets.apply(own.logits[90:], own.indices[90:]).gather(1, own.labels[90:, None])
        covered[draw] = int(inside.sum())
    rank = quantile_rank(images, 0.9)
    law = betabinom(judged, rank, images + 1 - rank)
    assert covered.mean() == pytest.approx(law.mean(), abs=3.5 * law.std() / math.sqrt(draws))
    assert covered.std() == pytest.approx(law.std(), rel=3.2 / math.sqrt(draws))
    assert law.mean() / judged >= 0.9
    edges = [38, 41, 43, 44, 45, 46, 47, 48, 49]  # groups 0 to 38, 39 to 41, ..., 50
    expected = np.diff([0, *law.cdf(edges), 1]) * draws
    seen = np.diff([0, *(np.sum(covered <= edge) for edge in edges), draws])
    assert ((seen - expected) ** 2 / expected).sum() < 30  # chi-squared with 9 degrees of freedom exceeds it once in 2,000


def test_each_class_is_covered_over_draws(one_thread):
    """With one threshold the hard class is missed more often than promised; with its own threshold it is not."""
    draws, shares = 300, {False: [], True: []}
    generator = torch.Generator().manual_seed(0)
    for draw in range(draws):
        labels = torch.arange(160) % 2
        logits = torch.randn(160, 2, generator=generator) + torch.nn.functional.one_hot(labels, 2) * 3.0
        logits[:, 0] += 1.5  # class 1 is told less well
        own = Predictions.from_logits(logits, labels)
        for by_class in shares:
            sets = fit_prediction_sets(own[:120], 0.9, by_class=by_class, tuning=0.25, seed=draw)
            inside = sets.apply(own.logits[120:]).gather(1, own.labels[120:, None])[:, 0]
            shares[by_class].append(float(inside[own.labels[120:] == 1].float().mean()))
    assert statistics.mean(shares[False]) < 0.87
    assert 0.9 - 0.01 < statistics.mean(shares[True]) < 0.94


def test_scores_of_sets_by_hand():
    sets = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0]], dtype=bool)
    found = set_scores(sets, [0, 2, 1, 2, 1], intervals=200)
    assert (found.images, found.coverage, found.mean_size, found.median_size, found.empty) == (5, 0.6, 7 / 5, 1.0, 0.2)
    assert [(g.low, g.high, g.images, float(g.coverage)) for g in found.by_size] == [
        (0, 0, 1, 0.0),
        (1, 1, 2, 1.0),
        (2, 3, 2, 0.5),
    ]
    assert [(g.low, g.images, float(g.coverage)) for g in found.by_class] == [(0, 1, 1.0), (1, 2, 0.5), (2, 2, 0.5)]
    for each in (found.coverage, found.mean_size, found.median_size, found.empty, *(g.coverage for g in found.by_size)):
        assert each.low <= each <= each.high
        assert each.low < each.high
    even = set_scores(sets[:4], [0, 2, 1, 2], intervals=0)
    assert even.median_size == 1.5 == statistics.median([1, 2, 0, 3])
    assert math.isnan(even.coverage.low)
    everything = set_scores(np.ones((20, 3), dtype=bool), np.zeros(20, dtype=int), intervals=50)
    assert (everything.coverage.low, everything.coverage.high) == (pytest.approx(0.8389, abs=1e-4), 1.0)  # Wilson
    assert (everything.empty, everything.mean_size.low, everything.median_size) == (0.0, 3.0, 3.0)


def test_intervals_of_sets_hold_the_truth():
    """Over 200 draws of 100 images the intervals of coverage and mean size miss the truth in about 5 %."""
    random = np.random.default_rng(0)
    missed = np.zeros(2)
    for draw in range(200):
        covered = random.random(100) < 0.8
        sizes = 1 + random.integers(0, 3, 100)
        sets = np.arange(4) < sizes[:, None]
        labels = np.where(covered, 0, 3)
        found = set_scores(np.where(covered[:, None], sets, sets & (np.arange(4) < 3)), labels, intervals=200, seed=draw)
        missed += [not found.coverage.low <= 0.8 <= found.coverage.high, not found.mean_size.low <= 2 <= found.mean_size.high]
    assert (missed / 200 <= 0.10).all()


BAD = [
    ({"coverage": 1.0}, "coverage must be between 0 and 1, got 1.0"),
    ({"coverage": 0.0}, "coverage must be between 0 and 1, got 0.0"),
    ({"coverage": float("nan")}, "coverage must be between 0 and 1, got nan"),
    ({"score": "apss"}, "Unknown score of prediction sets 'apss'. Did you mean 'aps'"),
    ({"randomised": True}, "randomised must be for aps and raps, got 'lac'"),
    ({"weight": 0.1}, "weight must be for raps, got 'lac'"),
    ({"score": "aps", "rank": 2}, "rank must be for raps, got 'aps'"),
    ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
    ({"temperature": 1.0, "tuning": 0.2}, "tuning must be left out where nothing is to be fitted"),
    ({"tuning": 1.0}, "tuning must be a share between 0 and 1, got 1.0"),
    ({"score": "raps", "weight": -1.0}, "weight must be at least 0, got -1.0"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options(options, message):
    with pytest.raises(SurefootError, match=message):
        fit_prediction_sets(drawn(50, 3, 0), **options)


def test_bad_predictions():
    with pytest.raises(SurefootError, match="at least 2 classes"):
        fit_prediction_sets(Predictions(torch.randn(9, 1), torch.zeros(9, dtype=torch.long)))
    with pytest.raises(SurefootError, match="logits must be finite; 1 of 9 images have NaN"):
        fit_prediction_sets(
            Predictions(torch.full((9, 2), 1.0).index_fill(0, torch.tensor([3]), float("nan")), torch.arange(9) % 2)
        )
    with pytest.raises(SurefootError, match="predictions must be of at least one image, got 0"):
        fit_prediction_sets(drawn(9, 3, 0)[:0])
    with pytest.raises(SurefootError, match="predictions must be of at least 2 images"):
        fit_prediction_sets(drawn(9, 3, 0)[:1])
    with pytest.raises(SurefootError, match="tuning must be of 3 classes as the predictions, got 4"):
        fit_prediction_sets(drawn(9, 3, 0), tuning=drawn(9, 4, 0, start=50))
    found = fit_prediction_sets(drawn(50, 3, 0))
    assert isinstance(found, PredictionSets)
    with pytest.raises(SurefootError, match="logits must be of 3 classes as those of the fit, got 4"):
        found.apply(torch.randn(2, 4))
    with pytest.raises(SurefootError, match="logits must be finite"):
        found.apply(torch.full((2, 3), float("nan")))
    with pytest.raises(SurefootError, match="ids must be one for each of 2 images, got 3"):
        found.apply(torch.randn(2, 3), torch.arange(3))
    with pytest.raises(SurefootError, match="sets must be boolean"):
        set_scores(np.ones((2, 3)), [0, 1])
    with pytest.raises(SurefootError, match="labels must be whole numbers from 0 to 2, got \\(0, 3\\)"):
        set_scores(np.ones((2, 3), dtype=bool), [0, 3])


def test_half_precision_and_no_indices():
    given_ = random_predictions(100, 3, 0, dtype=torch.float32)
    half = Predictions.from_logits(given_.logits.bfloat16(), given_.labels)
    found = fit_prediction_sets(half, 0.9, "aps")
    assert found.apply(half.logits).shape == (100, 3)
