"""Paired differences against a plain bootstrap, images in common, Holm's correction, mCE by hand."""

import copy
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import small_audits as small
import surefoot as sf
from surefoot.auditing.comparison import MCE, Difference, compare, name_apart, paired_scores, read_compared, with_real
from surefoot.auditing.depths import Depth
from surefoot.auditing.shared_images import Drawing
from surefoot.calibration.bootstrap import resamples
from surefoot.errors import SurefootError
from surefoot.measurements.attacks import summarise_attack
from surefoot.plain import plain
from surefoot.types import Predictions


@pytest.fixture
def pair(tmp_path):
    """Two models on the same images, the second never sure."""
    one = small.write(tmp_path / "a", small.audit("a"), small.predictions(1))
    two = small.write(tmp_path / "b", small.audit("b", fog=0.9), small.predictions(1, scale=0.1))
    return [read_compared(one), read_compared(two / "audit.json")]


def damaged(seed, sure=1.0, seen=None, attacked=None):
    """Predictions under every condition of the small audits: clean ones of 200 images, corruptions and the attack of fewer."""
    found = {"clean": small.predictions(seed)}
    for place, name in enumerate(small.CELLS):
        found[name] = small.predictions(10 * seed + place, sure=sure)[: seen or 120]
    found["pgd-weak"] = small.predictions(100 + seed, sure=sure)[: attacked or 80]
    return found


@pytest.fixture
def damaged_pair(tmp_path):
    given = [damaged(1), damaged(2, sure=1.5)]
    folders = [small.write(tmp_path / name, small.audit(name), each) for name, each in zip("ab", given, strict=True)]
    return [read_compared(folder) for folder in folders], given


def by_name(found):
    return {item.name.removeprefix("calibration."): item for item in found.differences}


def weights_of(indices):
    """How often each image counts in every draw."""
    return np.concatenate(list(resamples(np.asarray(indices), 0)))


def plain_difference(first, second, indices):
    """Of means of one number per image: the value and the percentiles of the draws, in the plainest way."""
    weights = weights_of(indices)
    gap = np.asarray(second, float) - np.asarray(first, float)
    draws = weights @ gap / weights.sum(1)
    return gap.mean(), *np.quantile(draws, [0.025, 0.975])


def ends_of(item):
    return item.value, item.low, item.high


def right(given):
    return given.correct.double().numpy()


def test_clean_differences_are_those_of_the_paired_bootstrap(pair):
    found = by_name(compare(pair))
    first, second = small.predictions(1), small.predictions(1, scale=0.1)
    known = sf.calibration.difference(second, first, names=["nll", "ece", "accuracy"])
    for name in ("nll", "ece", "accuracy"):
        item = found[name]
        assert ends_of(item) == pytest.approx((known[name], known[name].low, known[name].high), abs=1e-6)
        assert item.paired
    losses = [torch.nn.functional.cross_entropy(each.logits, each.labels, reduction="none") for each in (first, second)]
    assert ends_of(found["nll"]) == pytest.approx(plain_difference(*losses, first.indices), abs=1e-6)
    assert (found["accuracy"].value, found["accuracy"].real, found["accuracy"].better) == (0, False, 0)
    assert (found["nll"].real, found["nll"].better) == (True, -1)
    assert (found["ece"].real, found["ece"].better) == (True, -1)


def test_folders_are_read(pair):
    assert sf.compare([pair[0].folder, str(pair[1].folder / "audit.json")]) == compare(pair)


def test_without_rows_under_corruptions_they_are_unpaired_and_as_wide_as_both_intervals(pair):
    """By hand: 0.7 +- 0.01 and 0.75 +- 0.01 give 0.05 +- 0.02."""
    item = by_name(compare(pair))["corruptions.mean_accuracy"]
    assert ends_of(item) == pytest.approx((0.05, 0.03, 0.07))
    assert not item.paired
    assert item.real
    shown = compare(pair).for_page()
    assert all(row["paired"] and row["low"] is not None for row in shown)
    assert "calibration.nll" in {row["name"] for row in shown}


def test_corruptions_and_attacks_are_those_of_the_paired_bootstrap(damaged_pair):
    """Means over conditions, rates among the images that were right, and mCE, each from the draws of its own images."""
    models, (one, two) = damaged_pair
    found = compare(models)
    items = by_name(found)
    assert found.notes == []
    means = [np.mean([right(given[cell]) for cell in small.CELLS], 0) for given in (one, two)]
    item = items["corruptions.mean_accuracy"]
    assert ends_of(item) == pytest.approx(plain_difference(*means, one["fog/1"].indices))
    assert item.paired
    assert found.values["corruptions.mean_accuracy"] == pytest.approx({"a": means[0].mean(), "b": means[1].mean()})
    few = one["pgd-weak"].indices
    kept = [right(given["clean"][:80]) * right(given["pgd-weak"]) for given in (one, two)]
    assert ends_of(items["attacks.pgd-weak.robust_accuracy"]) == pytest.approx(plain_difference(*kept, few))
    weights = weights_of(few)
    rates, draws = [], []
    for given, still in zip((one, two), kept, strict=True):
        before = right(given["clean"][:80])
        rates.append(1 - still.sum() / before.sum())
        draws.append(1 - weights @ still / (weights @ before))
    expected = rates[1] - rates[0], *np.quantile(draws[1] - draws[0], [0.025, 0.975])
    assert ends_of(items["attacks.pgd-weak.success_rate"]) == pytest.approx(expected)


def test_paired_mce_by_hand(damaged_pair):
    models, given = damaged_pair
    errors = [
        [1 - np.mean([right(each[f"{name}/{k}"]) for k in (1, 3)], 0) for name in ("gaussian_noise", "fog")] for each in given
    ]
    weights = weights_of(given[0]["fog/1"].indices)
    drawn = [[weights @ error / weights.sum(1) for error in side] for side in errors]
    value = np.mean([b.mean() / a.mean() for a, b in zip(*errors, strict=True)]) - 1
    draws = np.mean([b / a for a, b in zip(*drawn, strict=True)], 0) - 1
    item = by_name(compare(models))[MCE]
    assert ends_of(item) == pytest.approx((value, *np.quantile(draws, [0.025, 0.975])))
    assert (item.paired, item.better) == (True, 1)


def test_an_attack_that_only_one_has_does_not_matter(damaged_pair):
    models, _ = damaged_pair
    models[1].audit["attacks"]["my.module:attack"] = models[1].audit["attacks"]["pgd-weak"]
    found = by_name(compare(models))
    assert found["corruptions.mean_accuracy"].paired
    assert not any("my.module" in name for name in found)


def test_fewer_images_under_a_condition(tmp_path, damaged_pair):
    """The second put 50 and 20 of them under corruptions and the attack; draws are of what both saw."""
    models, (one, _) = damaged_pair
    two = damaged(2, seen=50, attacked=20)
    found = compare([models[0], read_compared(small.write(tmp_path / "c", small.audit("c"), two))])
    assert found.notes == [
        "Under corruptions the audits saw 120 and 50 images; 50 that all saw are compared.",
        "Under pgd-weak the audits saw 80 and 20 images; 20 that all saw are compared.",
    ]
    means = [np.mean([right(given[cell][:50]) for cell in small.CELLS], 0) for given in (one, two)]
    assert ends_of(by_name(found)["corruptions.mean_accuracy"]) == pytest.approx(plain_difference(*means, range(7, 57)))
    robust = [right(given["clean"][:20]) * right(given["pgd-weak"][:20]) for given in (one, two)]
    item = by_name(found)["attacks.pgd-weak.robust_accuracy"]
    assert ends_of(item) == pytest.approx(plain_difference(*robust, range(7, 27)))


def test_conditions_on_no_common_images_are_not_paired(tmp_path, damaged_pair):
    models, _ = damaged_pair
    two = damaged(2)
    two["pgd-weak"] = small.predictions(102)[100:150]
    found = compare([models[0], read_compared(small.write(tmp_path / "c", small.audit("c"), two))])
    assert found.notes == ["Under pgd-weak no two images were seen by all: no difference there is paired."]
    items = by_name(found)
    assert not items["attacks.pgd-weak.success_rate"].paired
    assert items["corruptions.mean_accuracy"].paired


def test_mce_relative_to_the_first_by_hand(pair):
    """Errors 0.4 and 0.2 of the first, 0.4 and 0.1 of the second: (1 + 0.5) / 2 - 1."""
    item = by_name(compare(pair))[MCE]
    assert item.value == pytest.approx(-0.25)
    assert item.better == 1
    ratio = (0.39 / 0.41 + 0.095 / 0.21) / 2 - 1  # of fog at severity 1 all are right, and no more than that
    assert (item.low, item.high) == pytest.approx((ratio, (0.41 / 0.39 + 0.11 / 0.19) / 2 - 1))


def test_mce_leaves_out_what_the_first_never_gets_wrong(pair):
    for cell in pair[0].audit["corruptions"]["cells"]:
        if cell["name"] != "fog":
            cell["accuracy"] = {"value": 1.0, "low": 1.0, "high": 1.0}
    item = by_name(compare(pair))[MCE]
    assert item.value == pytest.approx(0.1 / 0.2 - 1)
    assert math.isfinite(item.high)


def test_images_in_common(pair, tmp_path):
    """The second saw fewer, in another order, and knows them by other indices: their ids say which they are."""
    order = torch.randperm(200, generator=torch.Generator().manual_seed(3))[:150]
    both = small.predictions(1), small.predictions(5)[order]
    names = {place: f"test/{index}.png" for place, index in enumerate(both[1].indices.tolist())}
    moved = replace(both[1], indices=torch.arange(150))
    found = compare([pair[0], read_compared(small.write(tmp_path / "c", small.audit("c"), moved, names))])
    assert found.notes == ["The audits saw 200 and 150 images; 150 that all saw are compared."]
    first = both[0][order]
    expected = plain_difference(right(first), right(both[1]), first.indices)
    assert ends_of(by_name(found)["accuracy"]) == pytest.approx(expected)
    assert found.values["calibration.accuracy"] == pytest.approx({"a": right(first).mean(), "c": right(both[1]).mean()})


def test_other_order_changes_nothing(pair, tmp_path):
    order = torch.randperm(200, generator=torch.Generator().manual_seed(3))
    again = read_compared(small.write(tmp_path / "c", small.audit("b", fog=0.9), small.predictions(1, scale=0.1)[order]))
    assert compare([pair[0], again]) == compare(pair)


def test_the_same_picture_twice_is_two_images(tmp_path):
    names = {index: f"{index // 2}.png" for index in range(7, 207)}
    two = [
        read_compared(small.write(tmp_path / name, small.audit(name), given, names))
        for name, given in (("a", small.predictions(1)), ("b", small.predictions(2)))
    ]
    expected = plain_difference(right(small.predictions(1)), right(small.predictions(2)), range(7, 207))
    found = compare(two)
    assert ends_of(by_name(found)["accuracy"]) == pytest.approx(expected)
    assert found.notes == []


def test_where_ids_do_not_meet_images_go_by_index(pair, tmp_path):
    """As a model's audit beside one of predictions, whose images have no names."""
    audits = [compare([pair[0], pair[1]])]
    answers = small.predictions(1, scale=0.1)
    sf.audit_predictions(answers, name="b", output=tmp_path / "p")
    audits.append(compare([pair[0], tmp_path / "p"]))
    one, two = (by_name(found)["nll"] for found in audits)
    assert ends_of(one) == pytest.approx(ends_of(two))
    assert two.paired


def test_what_cannot_be_compared(pair, tmp_path):
    given = small.predictions(1, scale=0.1)

    def other(name, predictions, names=None):
        return read_compared(small.write(tmp_path / name, small.audit("b"), predictions, names))

    with pytest.raises(SurefootError, match="'a' and 'b' have other labels for 200 of the same images"):
        compare([pair[0], other("labels", replace(given, labels=(given.labels + 1) % 3))])
    with pytest.raises(SurefootError, match="fewer than 2 images in common"):
        compare([pair[0], other("indices", replace(given, indices=given.indices + 1000))])
    for part, value, message in (
        ("data", {"name": "cifar10"}, "data differ, digits and cifar10"),
        ("split", "train", "split"),
        ("classes", ["0", "1"], "number of classes differ, 3 and 2"),
    ):
        audit = {**pair[1].audit, "subject": {**pair[1].audit["subject"], part: value}}
        with pytest.raises(SurefootError, match=message):
            compare([pair[0], replace(pair[1], audit=audit)])
    with pytest.raises(SurefootError, match="at least two"):
        compare(pair[:1])


def test_without_a_table_everything_is_unpaired_and_said(pair, tmp_path):
    found = compare([pair[0], small.write(tmp_path / "c", small.audit("b"))])
    assert found.notes == ["No table beside the audit of b: no difference of it is paired."]
    assert not any(item.paired for item in found.differences)
    assert by_name(found)["ece"].value == 0


def test_others_are_paired_beside_one_without_a_table(pair, tmp_path):
    found = compare([*pair, small.write(tmp_path / "c", small.audit("c"))])
    assert {item.second: item.paired for item in found.differences if item.name == "calibration.nll"} == {"b": True, "c": False}


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

    assert item(2.5).distance == pytest.approx(2.5 / 1.959964)
    assert [d.real for d in with_real([item(2.5)])] == [True]
    assert [d.real for d in with_real([item(2.5)] * 10)] == [False] * 10
    assert [d.real for d in with_real([item(2.5), item(4.0), *[item(0.1)] * 8])] == [False, True, *[False] * 8]
    stepped = [item(3.0), item(2.4), item(2.0)]  # p = 0.0027, 0.0164, 0.0455 against 0.05 / 3, / 2, / 1
    assert [d.real for d in with_real(stepped)] == [True, True, True]
    unknown = Difference("x", "a", "b", 1.0, -math.inf, math.inf, False, 1)
    assert not with_real([unknown])[0].real


def test_the_interval_shown_is_the_one_of_the_verdict():
    """Widths by hand: 1 - 0.05 / 3 two-sided is 2.3940 deviations, 1 - 0.05 / 2 is 2.2414; after a failure its width stays."""

    def item(name, z):
        return Difference(name, "a", "b", z, z - 1.959964, z + 1.959964, True, 1)

    found = with_real([item("x", 2.6), item("y", 2.2), item("z", -2.1)])
    assert [d.real for d in found] == [True, False, False]
    assert found[0].adjusted == pytest.approx((2.6 - 2.3940, 2.6 + 2.3940), abs=1e-4)
    assert found[1].adjusted == pytest.approx((2.2 - 2.2414, 2.2 + 2.2414), abs=1e-4)
    assert found[2].adjusted == pytest.approx((-2.1 - 2.2414, -2.1 + 2.2414), abs=1e-4)
    draw = np.random.default_rng(0)
    for _ in range(50):
        many = [Difference("x", "a", "b", v, v - a, v + b, True, 1) for v, a, b in draw.normal(1, 1, (8, 3)).__abs__()]
        assert all(d.real == (not d.adjusted[0] <= 0 <= d.adjusted[1]) for d in with_real(many))


def test_a_primary_number_is_not_corrected(pair):
    found = by_name(compare(pair, primary=["nll"]))
    assert found["nll"].primary
    assert found["nll"].adjusted == pytest.approx((found["nll"].low, found["nll"].high))
    assert not found["ece"].primary
    assert found["ece"].adjusted[0] < found["ece"].low
    with pytest.raises(SurefootError, match="Unknown number to compare 'acuracy'. Did you mean 'accuracy'"):
        compare(pair, primary=["acuracy"])


def test_scores_of_a_real_audit_are_its_own(digits, tmp_path):
    """From the table come the values and the draws from which the audit made its intervals."""
    depth = Depth(
        "tiny",
        {
            "corruptions": {"names": ("gaussian_noise", "fog"), "severities": (2, 5), "max_images": 40},
            "attacks": {"names": ("fgsm",), "max_images": 30},
        },
    )
    data = replace(digits, test=sf.load_data("digits", max_images=60).test)
    found = sf.audit(sf.load_model("tiny-resnet", data=digits, seed=0), data, depth=depth, output=tmp_path, progress=False)
    same = compare([tmp_path, tmp_path])
    assert not any(item.real for item in same.differences)
    assert all(item.paired for item in same.differences)
    assert by_name(same)["attacks.fgsm.success_rate"].value == 0
    numbers = {
        "corruptions.mean_accuracy": found.corruptions.mean_accuracy,
        "corruptions.mean_nll": found.corruptions.mean_nll,
        "corruptions.mean_scaled_ece": found.corruptions.mean_scaled_ece,
        "calibration.ece": found.calibration.ece,
        "calibration.aurc": found.calibration.aurc,
        "temperature.calibration.ece": found.temperature.calibration.ece,
        "attacks.fgsm.success_rate": found.attacks["fgsm"].success_rate,
    }
    for name, number in numbers.items():
        assert list(same.values[name].values()) == pytest.approx([float(number)] * 2, abs=1e-6), name
    (held, _), _ = paired_scores([read_compared(tmp_path)] * 2, Drawing(0))
    for name in ("corruptions.mean_accuracy", "corruptions.mean_nll"):
        assert np.quantile(held[name][1], [0.025, 0.975]) == pytest.approx([numbers[name].low, numbers[name].high], abs=1e-5)
    assert held["corruptions.mean_scaled_ece"][1].mean() > numbers["corruptions.mean_scaled_ece"]  # no interval by itself


def attacked(right_before, right_after):
    """An attack on images of class 0."""
    sides = [torch.stack([torch.tensor(right) * 2.0 - 1, torch.zeros(len(right))], 1) for right in (right_before, right_after)]
    labels, indices = torch.zeros(len(right_before), dtype=torch.long), torch.arange(len(right_before))
    return [small.rows_of(Predictions.from_logits(logits, labels, indices=indices)) for logits in sides]


def test_draws_of_an_attack_give_its_own_intervals():
    clean, after = attacked([1] * 30 + [0] * 10, [1] * 21 + [0] * 19)
    found = summarise_attack(clean, after, 0.1, Drawing(3))
    weights = np.concatenate(list(resamples(40, 3)))
    kept = weights @ after["correct"] / 40
    for name, value, draws in (
        ("success_rate", 9 / 30, 1 - weights @ after["correct"] / (weights @ clean["correct"])),
        ("robust_accuracy", 21 / 40, kept),
    ):
        number = getattr(found, name)
        assert number == pytest.approx(value)
        assert np.quantile(draws, [0.025, 0.975]) == pytest.approx([number.low, number.high])


def test_an_attack_without_right_predictions_has_no_success():
    summary = summarise_attack(*attacked([0] * 8, [0] * 8), 0.1, Drawing(0))
    assert math.isnan(summary.success_rate)
    assert summary.robust_accuracy == 0
    assert plain(summary)["success_rate"]["value"] is None


def test_an_attack_that_always_succeeds_may_yet_fail():
    """Wilson by hand: 8 of 8 are at least 8 / (8 + 1.96^2); a bootstrap of eight equal images would see no doubt."""
    rate = summarise_attack(*attacked([1] * 8, [0] * 8), 0.1, Drawing(0)).success_rate
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


def test_audits_without_corruptions_are_compared(pair):
    """`corruptions` is null where they were not measured."""
    models = [replace(each, audit={**each.audit, "corruptions": None}) for each in pair]
    found = compare(models)
    assert found.notes == []
    assert by_name(found)["nll"].paired


def test_a_kept_audit_does_not_take_the_table_of_a_later_one(tmp_path, caplog):
    """audit.json was copied, and the folder audited again: what lies beside belongs to the second."""
    small.write(tmp_path, small.audit("old"), small.predictions(1), key="first")
    (tmp_path / "baseline.json").write_text((tmp_path / "audit.json").read_text())
    assert len(read_compared(tmp_path / "baseline.json").clean["index"]) == 200  # still its own
    small.write(tmp_path, small.audit("new"), small.predictions(1, scale=0.1), key="second")
    kept, now = read_compared(tmp_path / "baseline.json"), read_compared(tmp_path)
    assert (kept.clean, kept.table, kept.whole) == (None, None, False)
    assert "is another audit's" in caplog.text
    assert now.whole
    assert now.clean["confidence"] == pytest.approx(small.predictions(1, scale=0.1).confidences.numpy())


def test_a_torn_part_is_said_in_a_line(pair):
    (pair[0].table / "part-00000.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(SurefootError, match=r"part-00000.parquet' is no part of a table"):
        read_compared(pair[0].folder)


def test_tables_are_compared_without_torch(pair):
    """In a process where torch cannot be imported."""
    code = (
        "import sys\nsys.modules['torch'] = None\nfrom surefoot.auditing.comparison import compare\n"
        f"print(compare([{str(pair[0].folder)!r}, {str(pair[1].folder)!r}]).for_page()[1]['paired'])"
    )
    paths = str(Path(sf.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
