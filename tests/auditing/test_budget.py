"""An audit within a time: fewer images by one share, the same when it goes on, and words that say so."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

import surefoot as sf
from surefoot.auditing import passes
from surefoot.auditing.arguments import parse_time
from surefoot.auditing.budget import CHANGING, FEWEST, FEWEST_CLEAN, WRITING, Budget, affordable, cost_of, expected, fit_to_time
from surefoot.auditing.depths import Depth
from surefoot.cli import targets
from surefoot.data.subsets import taken
from surefoot.errors import SurefootError
from surefoot.measurements.attacks import Attacked, Attacks, Masking
from surefoot.measurements.context import Context
from surefoot.measurements.corruptions import Corruptions
from surefoot.measurements.foreign import Foreign
from surefoot.models.classifier import pick_device
from surefoot.progress import duration

DEPTH = Depth("own", {"corruptions": {"names": ("fog", "contrast"), "severities": (1, 3), "max_images": 200}})


@pytest.fixture
def context(run, digits):
    return Context(run.model.eval(), digits, digits.test, pick_device("cpu"))


@pytest.fixture
def clock(monkeypatch):
    """It stands still, and an image takes what is said; what was spent before is what `began` says."""

    def of(seconds):
        monkeypatch.setattr("surefoot.auditing.audit.seconds_of", lambda *_: seconds)
        monkeypatch.setattr("surefoot.auditing.audit.time", SimpleNamespace(perf_counter=lambda: 1000.0))

    return of


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2 M ", 120)])
def test_times(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "0s", "-1m", "10 days"])
def test_what_is_no_time(text):
    with pytest.raises(SurefootError, match="--time must be a number with s, m or h"):
        parse_time(text)


def test_costs_by_hand(context):
    """Four corruptions are four passes and what changing 3 x 32 x 32 values takes; PGD has seven steps of three passes,
    for the images that are right.
    """
    corruptions = Corruptions(names=("fog", "contrast"), severities=(1, 3))
    assert cost_of(corruptions, context, 0.01) == pytest.approx(4 * 0.01 + 4 * CHANGING * 3072)
    right = (context.clean.logits.argmax(1) == context.images.labels).float().mean().item()
    assert cost_of(Masking(), context, 0.01) == pytest.approx(183 * 0.01 * right)
    assert cost_of(Attacks(names=("fgsm", "pgd-weak")), context, 0.01) == pytest.approx((4 + 22) * 0.01 * right)
    assert Attacked("square", queries=200).passes == 200


def test_the_share_by_hand(context):
    """540 clean images and 200 under four conditions, at 10 ms: what is left after 3 s of reading and 5.4 s is half of 8 s."""
    measured = {"corruptions": Corruptions(names=("fog", "contrast"), severities=(1, 3), max_images=200)}
    wanted = 200 * cost_of(measured["corruptions"], context, 0.01)
    lines = fit_to_time(measured, context, 0.01, Budget((3 + 5.4 + wanted / 2) / (1 - WRITING), spent=3))
    assert measured["corruptions"].max_images == 100
    assert "corruptions 100 of 200 images" in lines[0]
    assert fit_to_time(measured, context, 0.01, Budget(1000)) == []
    (line,) = fit_to_time(measured, context, 0.01, Budget(1))
    assert measured["corruptions"].max_images == FEWEST
    least = 5.4 + FEWEST * cost_of(measured["corruptions"], context, 0.01)
    said = f"takes about {duration(least)} ({duration(1)} are too few: no number is of fewer than {FEWEST} images) and not"
    assert said in line


def test_several_processes_share_all_of_it(context, monkeypatch):
    monkeypatch.setattr("surefoot.auditing.budget.share_of_work", lambda: (0, 4))
    measured = {"corruptions": Corruptions(names=("fog", "contrast"), severities=(1, 3), max_images=200)}
    wanted = 200 * cost_of(measured["corruptions"], context, 0.01)
    budget = Budget((5.4 + wanted / 2) / 4 / (1 - WRITING))
    (line,) = fit_to_time(measured, context, 0.01, budget)
    assert measured["corruptions"].max_images == 100
    assert f"takes about {duration(budget.whole)} and not {duration((5.4 + wanted) / 4)};" in line


def test_a_time_for_clean_images_that_cannot_be_kept(digits):
    rows, (line,) = affordable(digits.test, 10.0, Budget(60.0), 0)
    assert len(rows) == FEWEST_CLEAN
    assert line.startswith(
        f"{FEWEST_CLEAN} of {len(digits.test)} images, so that it takes about {duration(1000)} ({duration(60)} are too few"
    )


@pytest.mark.parametrize("count", [20, 60, None])
def test_a_part_has_the_first_images_of_all(context, digits, count):
    """What is measured on few images is measured on the same ones, however many of the clean images there was time for."""
    rows, _ = affordable(digits.test, 0.05, Budget(50.0, spent=7.5), 0)
    part = replace(context, images=taken(digits.test, rows), part_of=(digits.test, rows), kept={})
    assert len(rows) == 200
    expected = context.rows(200 if count is None else count)
    assert part.images.indices[part.rows(count)].tolist() == digits.test.indices[expected].tolist()
    assert part.subset(count).indices.tolist() == digits.test.indices[expected].tolist()


def test_an_audit_within_a_time(run, digits, tmp_path, clock):
    clock(0.01)
    audits = [
        sf.audit(run.model, digits, depth=DEPTH, time_budget=budget, began=998.5, output=tmp_path / str(budget), progress=False)
        for budget in (10.0, None)
    ]
    assert len(audits[0].table("clean")) == 200  # a quarter of the time; three are left for 200 pictures under 4 conditions
    assert [audit.corruptions.images for audit in audits] == [pytest.approx(145, abs=5), 200]
    assert audits[0].subject["model"][-1].startswith("Fewer images, so that it takes about 10 seconds and not")
    few, many = (audit.table("fog/3").set_index("index") for audit in audits)
    assert set(few.index) < set(many.index)  # so that the two can be compared
    assert (few["confidence"] - many.loc[few.index, "confidence"]).abs().max() < 1e-4


def test_an_interrupted_audit_goes_on_with_the_images_of_its_plan(run, digits, tmp_path, clock, monkeypatch):
    """However long reading takes the second time."""
    clock(0.01)
    given = {"depth": DEPTH, "time_budget": 10.0, "progress": False}
    whole = sf.audit(run.model, digits, **given, began=998.5, output=tmp_path / "whole")
    keep, done = passes.keep, []

    def interrupted(*arguments):
        done.append(arguments)
        if len(done) == 2:
            raise KeyboardInterrupt
        keep(*arguments)

    monkeypatch.setattr(passes, "keep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sf.audit(run.model, digits, **given, began=998.5, output=tmp_path / "again")
    again = sf.audit(run.model, digits, **given, began=994.0, output=tmp_path / "again")
    assert 100 < len(whole.table("clean")) < len(digits.test)
    for condition in ("clean", "fog/3"):
        assert again.table(condition)["index"].tolist() == whole.table(condition)["index"].tolist()
    late = sf.audit(run.model, digits, **given, began=994.0, output=tmp_path / "late")
    assert len(late.table("clean")) < len(whole.table("clean"))


def test_the_command_counts_from_its_start(surefoot, here, run, monkeypatch):
    """Before anything is read."""
    seen = {}

    def measured(*_, **given):
        seen.update(given, reading=time.perf_counter() - given["began"])
        raise SurefootError("that is enough")

    monkeypatch.setattr("surefoot.auditing.audit.audit", measured)
    read = targets.from_run
    monkeypatch.setattr(targets, "from_run", lambda *given: (time.sleep(0.3), read(*given))[1])
    assert surefoot("audit", run.folder).err == "surefoot: that is enough\n"
    assert (seen["time_budget"], seen["depth"]) == (120, "quick")
    assert 0.3 < seen["reading"] < 60


def test_few_of_many_images_where_all_would_take_too_long(run, digits, tmp_path, clock):
    """540 images at 0.1 s and 57 s that are left of 65: a quarter of the time is for 142, each class in its share."""
    clock(0.1)
    groups = [str(label) for label in digits.test.labels.tolist()]
    audit = sf.audit(
        run.model, digits, depth="clean", time_budget=65.0, began=1000 - 4.75, groups=groups, progress=False, batch_size=64
    )
    assert audit.subject["images"] == len(audit.table("clean")) == 142
    assert "142 of 540 images, so that it takes about 65 seconds" in audit.subject["model"][-1]
    assert sum(row.images for row in audit.groups) == 142
    assert {row.images for row in audit.groups} <= {13, 14, 15}
    assert affordable(digits.test, 0.001, Budget(60.0), 0) == (None, [])
    assert len(affordable(digits.test, 60.0, Budget(60.0, spent=90.0), 0)[0]) == FEWEST_CLEAN


def test_what_is_expected_of_foreign_pictures(context):
    """Four sets of pictures that are made, as many as the known ones, and the training pictures."""
    foreign = Foreign(max_images=100, train_images=200)
    assert cost_of(foreign, context, 0.01) == pytest.approx((4 + 200 / 100) * 0.01)
    foreign.take(50)
    assert (foreign.max_images, foreign.train_images) == (50, 100)
    whole = expected({"foreign": foreign}, context, 0.01)
    assert whole == pytest.approx({"clean": 540 * 0.01, "foreign": 50 * 6 * 0.01})


def test_clean_is_the_pictures_alone(run, digits):
    audit = sf.audit(run.model, digits, depth="clean", progress=False)
    assert (audit.corruptions, audit.attacks) == (None, {})
    assert audit.recognition.balanced_accuracy > 0.5
