"""Paired differences against a plain bootstrap, alignment of images, Holm's correction, mCE by hand."""

import copy
import json
import math
from dataclasses import replace

import pytest
import torch

import small_audits as small
import surefoot as sf
from surefoot.attacks.attempts import AttackResult
from surefoot.auditing.aligning import align, name_apart, read_compared
from surefoot.auditing.attacking import attack_draws, attack_record
from surefoot.auditing.comparing import MCE, Difference, compare, with_real
from surefoot.auditing.depths import DEPTHS
from surefoot.auditing.pairing import load_draws
from surefoot.calibration.calibrators import digest_of
from surefoot.errors import SurefootError
from surefoot.plain import plain


@pytest.fixture
def pair(tmp_path):
    """Two models on the same images, the second never sure."""
    one = small.write(tmp_path / "a", small.audit("a"), small.predictions(1))
    two = small.write(tmp_path / "b", small.audit("b", fog=0.9), small.predictions(1, scale=0.1))
    return [read_compared(one), read_compared(two / "audit.json")]


def by_name(found):
    return {item.name.removeprefix("calibration."): item for item in found.differences}


def test_clean_differences_are_those_of_the_paired_bootstrap(pair):
    found = by_name(compare(pair))
    plain = sf.calibration.difference(pair[1].predictions, pair[0].predictions, names=["nll", "ece", "accuracy"])
    for name in ("nll", "ece", "accuracy"):
        item = found[name]
        assert (item.value, item.low, item.high) == pytest.approx((plain[name], plain[name].low, plain[name].high))
        assert item.paired
    assert (found["accuracy"].value, found["accuracy"].real, found["accuracy"].better) == (0, False, 0)
    assert (found["nll"].real, found["nll"].better) == (True, -1)
    assert (found["ece"].real, found["ece"].better) == (True, -1)


def test_folders_are_read(pair):
    assert sf.compare([pair[0].folder, str(pair[1].folder / "audit.json")]) == compare(pair)


def test_without_draws_the_rest_is_unpaired_and_as_wide_as_both_intervals(pair):
    """By hand: 0.7 +- 0.01 and 0.75 +- 0.01 give 0.05 +- 0.02."""
    item = by_name(compare(pair))["corruptions.mean_accuracy"]
    assert (item.value, item.low, item.high) == pytest.approx((0.05, 0.03, 0.07))
    assert not item.paired
    assert item.real
    shown = compare(pair).for_page()
    assert all(row["paired"] and row["low"] is not None for row in shown)
    assert "calibration.nll" in {row["name"] for row in shown}


def test_with_draws_of_the_same_images_the_rest_is_paired(tmp_path):
    draws = torch.rand(1000, generator=torch.Generator().manual_seed(0))
    found = []
    for name, shift in (("a", 0.0), ("b", 0.05)):
        kept = {"corruptions.mean_accuracy": draws + shift, "corruptions.fog.accuracy": draws * 0 + 0.8 + 2 * shift}
        kept["corruptions.gaussian_noise.accuracy"] = draws * 0 + 0.6
        plain = small.audit(name, fog=0.8 + 2 * shift)
        found.append(read_compared(small.write(tmp_path / name, plain, small.predictions(1), kept)))
    item = by_name(compare(found))["corruptions.mean_accuracy"]
    assert (item.value, item.low, item.high) == pytest.approx((0.05, 0.05, 0.05), abs=1e-6)  # every draw agrees
    assert item.paired
    mce = by_name(compare(found))[MCE]
    assert (mce.value, mce.low) == pytest.approx((-0.25, -0.25), abs=1e-5)
    found[1].audit["attacks"]["my.module:attack"] = found[1].audit["attacks"]["pgd-weak"]
    assert by_name(compare(found))["corruptions.mean_accuracy"].paired  # an attack that only one has does not matter
    found[1].audit["subject"]["seed"] = 1
    assert not by_name(compare(found))["corruptions.mean_accuracy"].paired


def test_mce_relative_to_the_first_by_hand(pair):
    """Errors 0.4 and 0.2 of the first, 0.4 and 0.1 of the second: (1 + 0.5) / 2 - 1."""
    item = by_name(compare(pair))[MCE]
    assert item.value == pytest.approx(-0.25)
    assert item.better == 1
    ratio = (0.39 / 0.41 + 0.09 / 0.21) / 2 - 1
    assert (item.low, item.high) == pytest.approx((ratio, (0.41 / 0.39 + 0.11 / 0.19) / 2 - 1))


def test_mce_leaves_out_what_the_first_never_gets_wrong(pair):
    for cell in pair[0].audit["corruptions"]["cells"]:
        if cell["name"] != "fog":
            cell["accuracy"] = {"value": 1.0, "low": 1.0, "high": 1.0}
    item = by_name(compare(pair))[MCE]
    assert item.value == pytest.approx(0.1 / 0.2 - 1)
    assert math.isfinite(item.high)


def test_images_in_common(pair):
    """The second saw fewer, in another order."""
    order = torch.randperm(200, generator=torch.Generator().manual_seed(3))[:150]
    other = replace(pair[1], predictions=pair[1].predictions[order])
    models, notes = align([pair[0], other])
    assert notes == ["The audits saw 200 and 150 images; 150 that all saw are compared."]
    assert torch.equal(models[0].predictions.indices, (order + 7).sort().values)
    assert torch.allclose(models[0].predictions.logits * 0.1, models[1].predictions.logits)
    assert by_name(compare([pair[0], other]))["accuracy"].value == 0
    assert compare([pair[0], other]).values["calibration.accuracy"]["a"] == pytest.approx(
        pair[0].predictions[order].correct.double().mean().item()
    )


def test_what_cannot_be_compared(pair):
    answers = pair[1].predictions
    wrong = replace(pair[1], predictions=replace(answers, labels=(answers.labels + 1) % 3))
    with pytest.raises(SurefootError, match="'a' and 'b' have other labels for 200 of the same images"):
        align([pair[0], wrong])
    with pytest.raises(SurefootError, match="fewer than 2 images in common"):
        align([pair[0], replace(pair[1], predictions=replace(answers, indices=answers.indices + 1000))])
    with pytest.raises(SurefootError, match="do not say which"):
        align([pair[0], replace(pair[1], predictions=replace(answers[:9], indices=None))])
    for part, value, message in (("data", {"name": "cifar10"}, "data differ, digits and cifar10"), ("split", "train", "split")):
        audit = {**pair[1].audit, "subject": {**pair[1].audit["subject"], part: value}}
        with pytest.raises(SurefootError, match=message):
            compare([pair[0], replace(pair[1], audit=audit)])
    with pytest.raises(SurefootError, match="at least two"):
        compare(pair[:1])


def test_without_predictions_everything_is_unpaired_and_said(pair):
    found = compare([pair[0], replace(pair[1], predictions=None)])
    assert found.notes == ["No predictions beside the audit of b: no difference is paired."]
    assert not any(item.paired for item in found.differences)
    assert by_name(found)["ece"].value == 0


def test_other_depths_are_not_mixed(pair):
    pair[1].audit["subject"]["depth"] = "full"
    names = by_name(compare(pair))
    assert "accuracy" in names
    assert MCE not in names
    assert "corruptions.mean_accuracy" not in names


def test_three_models_against_the_first_or_in_all_pairs(pair):
    models = [*pair, replace(pair[1], name="c")]
    assert {(d.first, d.second) for d in compare(models).differences} == {("a", "b"), ("a", "c")}
    every = compare(models, all_pairs=True).differences
    assert {(d.first, d.second) for d in every} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert not any(d.real for d in every if d.first == "b")  # b and c are the same


def test_equal_names_are_told_apart(pair):
    twice = [replace(model, name="m") for model in pair]
    assert [model.name for model in name_apart(twice)] == [str(model.folder) for model in pair]
    assert [model.name for model in name_apart([pair[0], pair[0]])] == [f"{pair[0].folder} (1)", f"{pair[0].folder} (2)"]


def test_holm_by_hand():
    """Ten differences at z = 2.5 (p = 0.0124): alone it is real, among ten none is; one at z = 4 stands."""

    def item(z):
        return Difference("x", "a", "b", z, z - 1.959964, z + 1.959964, True, 1)

    assert item(2.5).probability == pytest.approx(0.012419, rel=1e-4)
    assert [d.real for d in with_real([item(2.5)])] == [True]
    assert [d.real for d in with_real([item(2.5)] * 10)] == [False] * 10
    assert [d.real for d in with_real([item(2.5), item(4.0), *[item(0.1)] * 8])] == [False, True, *[False] * 8]
    stepped = [item(3.0), item(2.4), item(2.0)]  # p = 0.0027, 0.0164, 0.0455 against 0.05 / 3, / 2, / 1
    assert [d.real for d in with_real(stepped)] == [True, True, True]
    unknown = Difference("x", "a", "b", 1.0, -math.inf, math.inf, False, 1)
    assert not with_real([unknown])[0].real


def test_draws_of_a_real_audit_give_its_own_intervals(digits, tmp_path):
    """The kept draws are those from which the audit made its intervals."""
    depth = replace(
        DEPTHS["quick"], name="tiny", severities=(2, 5), corruption_images=40, corruptions=("gaussian_noise", "fog"),
        attacks=("fgsm",), attack_images=30, geometry_images=10,
    )  # fmt: skip
    data = replace(digits, test=sf.load_data("digits", max_images=60).test)
    found = sf.audit(sf.load_model("small-resnet", data=digits, seed=0), data, depth=depth, output=tmp_path, progress=False)
    held = load_draws(tmp_path)
    numbers = {
        "corruptions.mean_accuracy": found.corruptions.mean_accuracy,
        "corruptions.mean_nll": found.corruptions.mean_nll,
        "corruptions.mean_scaled_ece": found.corruptions.mean_scaled_ece,
    }
    for name, number in numbers.items():
        ends = held[name].quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
        assert ends == pytest.approx([number.low, number.high], abs=1e-5), name
    same = compare([read_compared(tmp_path), read_compared(tmp_path)])
    assert not any(item.real for item in same.differences)
    assert by_name(same)["attacks.fgsm.success_rate"].paired


def attacked(right_before, right_after):
    """An attack on images of class 0."""
    sides = [torch.stack([torch.tensor(right) * 2.0 - 1, torch.zeros(len(right))], 1) for right in (right_before, right_after)]
    return AttackResult(*(sf.Predictions.from_logits(logits, torch.zeros(len(logits), dtype=torch.long)) for logits in sides))


def test_draws_of_an_attack_give_its_own_intervals():
    found = attack_record(attacked([1] * 30 + [0] * 10, [1] * 21 + [0] * 19), 0.1, seed=3)
    held = attack_draws(found.tensors["broken"], found.tensors["correct"], 3)
    for name, value in (("success_rate", 9 / 30), ("robust_accuracy", 21 / 40)):
        number = found.values["summary"][name]
        ends = held[name].quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
        assert number == pytest.approx(value)
        assert ends == pytest.approx([number.low, number.high])


def test_an_attack_without_right_answers_has_no_success():
    summary = attack_record(attacked([0] * 8, [0] * 8), 0.1, seed=0).values["summary"]
    assert math.isnan(summary["success_rate"])
    assert summary["robust_accuracy"] == 0
    assert (
        plain(vars(attack_record(attacked([0] * 8, [0] * 8), 0.1, seed=0))["values"])["summary"]["success_rate"]["value"]
        is None
    )


def test_an_attack_that_always_succeeds_may_yet_fail():
    """Wilson by hand: 8 of 8 are at least 8 / (8 + 1.96^2); a bootstrap of eight equal images would see no doubt."""
    rate = attack_record(attacked([1] * 8, [0] * 8), 0.1, seed=0).values["summary"]["success_rate"]
    assert (rate, rate.low, rate.high) == pytest.approx((1.0, 8 / (8 + 1.959964**2), 1.0))


def test_corruptions_of_another_kind_are_not_compared(pair):
    """Copies from disk, or fewer of them, at a depth of the same name."""
    for change in ("origin", "fewer"):
        other = copy.deepcopy(pair[1].audit)
        cells = other["corruptions"]["cells"]
        if change == "origin":
            cells[0]["origin"] = "read from disk"
        else:
            del cells[-1]
        found = compare([pair[0], replace(pair[1], audit=other)])
        assert not any(item.name.startswith("corruptions") for item in found.differences)
        assert found.notes == ["'a' and 'b' saw other corruptions: what they did under these is not compared."]


def test_where_copies_lie_and_who_drew_them_does_not_matter(pair):
    for origins in (("read from here/a", "read from there/b"), ("generated with seed 0", "generated with seed 1")):
        models = [copy.deepcopy(each.audit) for each in pair]
        for audit, origin in zip(models, origins, strict=True):
            for cell in audit["corruptions"]["cells"]:
                cell["origin"] = origin
        found = compare([replace(each, audit=audit) for each, audit in zip(pair, models, strict=True)])
        assert any(item.name.startswith("corruptions") for item in found.differences)


def test_other_names_of_classes_are_told(pair):
    other = copy.deepcopy(pair[1].audit)
    other["subject"]["classes"] = [f"{name}!" for name in other["subject"]["classes"]]
    assert compare([pair[0], replace(pair[1], audit=other)]).notes == ["'a' and 'b' have other names for their classes."]


def test_an_older_audit_of_the_same_answers_has_no_draws(tmp_path):
    """The answers are its own, the draws and the points of the figures are of the latest one."""
    answers = small.predictions(1)
    digest = digest_of(answers)
    latest, older = small.audit("a"), small.audit("a", fog=0.2)
    for each in (latest, older):
        each["subject"]["answers"] = digest
    folder = small.write(tmp_path / "a", latest, answers, {"corruptions.mean_accuracy": torch.rand(1000)})
    (folder / "old.json").write_text(json.dumps(older))
    (folder / "copy.json").write_text((folder / "audit.json").read_text())
    old = read_compared(folder / "old.json")
    assert (old.whole, old.draws) == (False, {})
    assert old.predictions is not None
    assert read_compared(folder / "copy.json").draws.keys() == {"corruptions.mean_accuracy"}


def test_a_kept_audit_does_not_take_the_data_of_a_later_one(tmp_path, caplog):
    """audit.json was copied, and the folder audited again: what lies beside belongs to the second."""
    answers = small.predictions(1), small.predictions(1, scale=0.1)
    for answer_set, name in zip(answers, ("old", "new"), strict=True):
        plain = small.audit(name)
        plain["subject"]["answers"] = digest_of(answer_set)
        small.write(tmp_path, plain, answer_set, {"corruptions.mean_accuracy": torch.rand(10)})
        if name == "old":
            (tmp_path / "baseline.json").write_text((tmp_path / "audit.json").read_text())
            kept = read_compared(tmp_path / "baseline.json")
            assert len(kept.predictions) == 200  # still its own
    kept, now = read_compared(tmp_path / "baseline.json"), read_compared(tmp_path)
    assert (kept.predictions, kept.draws, kept.whole) == (None, {}, False)
    assert "is another audit's" in caplog.text
    assert now.whole
    assert torch.equal(now.predictions.logits, answers[1].logits)
