"""Rules, names, directions, cautious ends, errors that say what to do, and the formats."""

import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

import small_audits as small
from surefoot.auditing.number_names import find_number, good_direction
from surefoot.auditing.rules import FORMATS, as_text, judge, parse_rule, parse_rules
from surefoot.errors import SurefootError


def holds(text, audit=None, **options):
    found = judge([parse_rule(text)], audit or small.audit(), **options)
    assert len(found) == 1
    return found[0].holds


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("ece < 0.03", True),
        ("ece < 0.02", False),
        ("ece <= 0.02", True),
        ("ece<0.03", True),
        ("calibration.accuracy >= 9/10", True),
        ("accuracy > 0.9", False),
        ("corruptions.mean_accuracy > 0.69", True),
        ("mean_accuracy > 0.71", False),
        ("attacks.pgd-weak.success_rate <= 0.5", True),
        ("corruptions.gaussian_noise.3.accuracy > 0.5", False),
        ("corruptions.gaussian_noise.3.accuracy > 0.49", True),
        ("corruptions.cells.fog.1.accuracy > 0.89", True),
        ("temperature.ece < 0.016", True),
        ("ece.high < 0.03", False),
        ("ece.low < 0.011", True),
        ("nll > -1e3", True),
    ],
)
def test_bounds(rule, expected):
    assert holds(rule) is expected


def test_cautious_takes_the_worse_end():
    assert holds("ece < 0.025")
    assert not holds("ece < 0.025", cautious=True)
    assert holds("accuracy > 0.885", cautious=True)
    assert not holds("accuracy > 0.895", cautious=True)
    assert holds("temperature.temperatures.0 < 2", cautious=True)  # has no interval


def test_names_stand_for_paths():
    assert find_number("ece", small.audit())[0] == "calibration.ece"
    path, number = find_number("corruptions.fog.3.accuracy", small.audit())
    assert (path, number.value) == ("corruptions.cells.fog.3.accuracy", pytest.approx(0.7))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("eec", r"Unknown number 'eec'\. Did you mean 'ece'\?"),
        ("corruptions.mean_acuracy", r"Did you mean 'corruptions\.mean_accuracy'\?"),
        ("attacks.pgd-strong.success_rate", "is not measured at depth quick: surefoot audit --depth standard does"),
        ("attacks.autoattack-weak.success_rate", "--depth full does"),
        ("corruptions.fog.2.accuracy", "is not measured at depth quick: surefoot audit --depth standard does"),
        ("noise.gaussian.4/255.accuracy", "is not measured at depth quick: surefoot audit --depth standard does"),
        ("noise.uniform.0.15.ece", "--depth full does"),
        ("occlusions.stripes.4.nll", "--depth standard does"),
        ("corruptions.snow.3.accuracy", "belongs to depth quick, and this audit does not have it"),
        ("corruptions.fog.accuracy", "may be any of 2 numbers; the first are corruptions.cells.fog.1.accuracy"),
        ("top5", "'top5' is not defined in this audit"),
        ("corruptions.alexnet_mce", "is not defined in this audit"),
        ("temperature.temperatures.0.low", "has no interval"),
    ],
)
def test_what_is_not_there(name, message):
    with pytest.raises(SurefootError, match=message):
        find_number(name, small.audit())


def test_a_level_of_noise_as_a_fraction():
    plain = small.audit()
    plain["noise"] = [{"kind": "gaussian", "level": level / 255, "accuracy": small.number(level / 10)} for level in (4, 8)]
    path, number = find_number("noise.gaussian.8/255.accuracy", plain)
    assert (path, number.value) == (f"noise.gaussian.{8 / 255}.accuracy", 0.8)


def test_predictions_alone():
    plain = small.audit()
    del plain["subject"]["depth"], plain["corruptions"], plain["attacks"]
    with pytest.raises(SurefootError, match="needs the model, and this audit is of predictions alone"):
        find_number("corruptions.mean_accuracy", plain)


def test_no_worse_than_a_baseline():
    """By hand: accuracy may fall and ECE may rise by the slack, and no further."""
    old = {"old.json": small.audit(accuracy=0.91, ece=0.015)}
    assert holds("accuracy: no worse than old.json by 0.01", baselines=old)
    assert not holds("accuracy: no worse than old.json by 0.009", baselines=old)
    assert holds("ece: no worse than old.json by 0.005", baselines=old)
    assert not holds("ece: no worse than old.json by 0.004", baselines=old)
    assert not holds("accuracy: no worse than old.json", baselines=old)
    better = {"old.json": small.audit(accuracy=0.5, ece=0.5)}
    assert holds("ece: no worse than old.json", baselines=better)
    assert holds("accuracy: no worse than old.json by 0.01", baselines=better)


def test_without_a_name_the_usual_numbers_are_compared():
    found = judge([parse_rule("no worse than old.json by 0.01")], small.audit(), {"old.json": small.audit(accuracy=0.95)})
    assert {v.name for v in found if not v.holds} == {"calibration.accuracy"}
    assert {"calibration.ece", "calibration.nll", "corruptions.mean_accuracy", "corruptions.mean_ece"} < {v.name for v in found}
    assert next(v for v in found if v.name == "calibration.accuracy").bound == pytest.approx(0.94)


def test_audits_that_cannot_be_compared():
    rule = [parse_rule("no worse than old.json by 0.01")]
    other = small.audit()
    other["subject"]["data"]["name"] = "cifar10"
    with pytest.raises(SurefootError, match="compares the test split of digits with the test split of cifar10"):
        judge(rule, small.audit(), {"old.json": other})
    with pytest.raises(SurefootError, match="mean_accuracy at depth quick with that at depth full"):
        judge(rule, small.audit(), {"old.json": small.audit(depth="full")})
    assert holds("ece: no worse than old.json", baselines={"old.json": small.audit(depth="full")})


def test_rules_of_a_file():
    rules = parse_rules(["ece < 0.03", {"accuracy": "no worse than b c.json by 1/100"}, "no worse than b.json"])
    assert [(r.name, r.sign, r.bound, r.baseline) for r in rules] == [
        ("ece", "<", 0.03, ""),
        ("accuracy", "", 0.01, "b c.json"),
        ("", "", 0.0, "b.json"),
    ]
    assert parse_rules({"rules": ["ece < 1"]}) == parse_rules(["ece < 1"])
    for wrong in ({}, [], "ece < 1", None, {"ece": 1, "nll": 2}):
        with pytest.raises(SurefootError, match="must be a list"):
            parse_rules(wrong)


@pytest.mark.parametrize("text", ["ece", "ece = 0.03", "ece < low", "no worse", "accuracy: no worse than b.json by -1", ""])
def test_rules_that_are_none(text):
    with pytest.raises(SurefootError, match="^Rule '"):
        parse_rule(text)


def test_direction():
    assert [good_direction(name) for name in ("attacks.fgsm.success_rate", "x.robust_accuracy", "ece.high")] == [-1, 1, -1]
    with pytest.raises(SurefootError, match="give a bound"):
        good_direction("calibration.signed_error")


OWN = "pkg.mod:Name"


def with_own():
    """An audit with a measurement and an attack of one's own, whose names have dots."""
    audit = small.audit()
    audit["measurements"] = {OWN: {"changed": small.number(0.1), "count": 3, "deep": {"er": 0.5}, "none": None}}
    audit["attacks"][f"a.{OWN}"] = audit["attacks"]["pgd-weak"]
    return audit


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (f'measurements."{OWN}".changed', f"measurements.{OWN}.changed"),
        (f"measurements.{OWN}.changed", f"measurements.{OWN}.changed"),
        (f"{OWN}.changed", f"measurements.{OWN}.changed"),
        ("changed", f"measurements.{OWN}.changed"),
        (f"{OWN}.changed.high", f"measurements.{OWN}.changed.high"),
        (f"{OWN}.deep.er", f"measurements.{OWN}.deep.er"),
        (f"attacks.a.{OWN}.success_rate", f"attacks.a.{OWN}.success_rate"),
    ],
)
def test_numbers_of_ones_own(name, path):
    assert find_number(name, with_own())[0] == path


def test_dots_of_a_name_do_not_make_it_longer():
    """Both attacks are meant by the same words, so neither is taken silently."""
    with pytest.raises(SurefootError, match="may be any of 2 numbers"):
        find_number("attacks.success_rate", with_own())


def test_what_is_not_there_of_ones_own():
    with pytest.raises(SurefootError, match=f"Did you mean '{OWN}.changed'"):
        find_number(f"{OWN}.chnged", with_own())
    with pytest.raises(SurefootError, match="is not defined in this audit"):
        find_number(f"{OWN}.none", with_own())


def test_rules_about_ones_own():
    rules = parse_rules([f"{OWN}.changed < 0.2", {f"attacks.a.{OWN}.success_rate": "no worse than b.json by 0.1"}])
    assert [verdict.holds for verdict in judge(rules, with_own(), {"b.json": with_own()})] == [True, True]
    with pytest.raises(SurefootError, match=r"Neither more nor less .* give a bound, such as changed < 1"):
        judge([parse_rule(f"{OWN}.changed: no worse than b.json")], with_own(), {"b.json": with_own()})


def test_formats():
    verdicts = judge([parse_rule("accuracy > 0.5"), parse_rule("ece < 0.01")], small.audit())
    text = FORMATS["text"]("m", verdicts).splitlines()
    assert text[0] == "BROKEN  ece < 0.01: calibration.ece < 0.01, found 0.02 (0.01 to 0.03)"
    assert text[-1] == "m: 1 of 2 rules broken"
    table = FORMATS["markdown"]("a|b`", verdicts)
    assert "### `a\\|b'`: 1 of 2 rules broken" in table
    assert table.splitlines()[4] == "| **broken** | `ece < 0.01` | `calibration.ece < 0.01` | 0.02 (0.01 to 0.03) |"
    suite = ElementTree.fromstring(FORMATS["junit"]("<m>", verdicts).encode())
    assert suite.attrib == {"name": "surefoot gate <m>", "tests": "2", "failures": "1", "errors": "0"}
    assert [case.find("failure") is not None for case in suite] == [False, True]
    assert "found 0.02" in suite[1].find("failure").attrib["message"]


def test_a_gate_imports_no_torch(tmp_path):
    folder = small.write(tmp_path / "a", small.audit())
    code = (
        "import sys\nfrom surefoot.cli.main import run\n"
        f"try: run(['gate', {str(folder)!r}, '--rule', 'ece < 0.03'])\n"
        "except SystemExit as stop: print(stop.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.splitlines()[-1] == "0 False"


def test_names_with_spaces():
    audit = small.audit()
    audit["groups"] = [{"name": "old town", "images": 9, "accuracy": {"value": 0.7, "low": 0.6, "high": 0.8}}]
    assert holds("groups.old town.accuracy > 0.6", audit)
    assert not holds("groups.old town.accuracy>0.8", audit)
    assert holds("groups.old town.accuracy: no worse than b.json by 0.01", audit, baselines={"b.json": audit})


def test_what_was_judged_is_told_from_its_bound():
    audit = small.audit("a")
    audit["calibration"]["accuracy"] = {"value": 0.94996, "low": 0.93, "high": 0.96}
    text = as_text("a", judge([parse_rule("accuracy >= 0.95")], audit))
    assert "BROKEN  accuracy >= 0.95: calibration.accuracy >= 0.95, found 0.94996 (0.93 to 0.96)\n" in text
    text = as_text("a", judge([parse_rule("accuracy >= 0.94")], audit, cautious=True))
    assert "found 0.95 (0.93 to 0.96), judged by 0.93\n" in text


def test_undefined_numbers_in_lists_are_called_so():
    audit = small.audit("a")
    nothing = {"value": None, "low": None, "high": None}
    audit["classes"] = [{"name": "b", "accuracy": {"value": 0.5, "low": 0.4, "high": 0.6}}, {"name": "c", "accuracy": None}]
    audit["thresholds"] = [{"wanted_risk": 0.01, "coverage": {"value": 0.0, "low": 0.0, "high": 0.0}, "risk": nothing}]
    for name in ("classes.c.accuracy", "thresholds.0.01.risk"):
        with pytest.raises(SurefootError, match=f"'{name}' is not defined in this audit"):
            judge([parse_rule(f"{name} > 0.5")], audit)


def test_classes_of_the_same_name_are_numbered():
    audit = small.audit("a")
    audit["classes"] = [
        {"name": name, "accuracy": {"value": v, "low": v, "high": v}} for name, v in (("crane", 0.9), ("crane", 0.2))
    ]
    with pytest.raises(SurefootError, match=r"Did you mean 'classes.crane \(\d\).accuracy'"):
        judge([parse_rule("classes.crane.accuracy > 0.5")], audit)
    assert judge([parse_rule("classes.crane (2).accuracy < 0.5")], audit)[0].holds


def test_a_baseline_of_other_damage_or_classes_is_refused():
    audit, before = small.audit("a"), small.audit("b")
    rules = [parse_rule("corruptions.mean_accuracy: no worse than b")]
    before["corruptions"]["cells"][0]["origin"] = "read from disk"
    with pytest.raises(SurefootError, match="the two audits saw other corruptions"):
        judge(rules, audit, {"b": before})
    same = before["corruptions"]["cells"][1]
    cell = [parse_rule(f"corruptions.cells.{same['name']}.{same['severity']}.accuracy: no worse than b")]
    assert judge(cell, audit, {"b": before})[0].name.startswith("corruptions.cells")
    before["subject"]["classes"] = ["x"]
    with pytest.raises(SurefootError, match="classes with one of 1"):
        judge([parse_rule("accuracy: no worse than b")], audit, {"b": before})


def test_slack_is_in_the_unit_of_the_number():
    """NLL is 0.4 here: by 0.01 it may rise to 1.01 times the old value, and no further."""
    for old, expected in ((0.4 / 1.0101, False), (0.4 / 1.0099, True), (0.4, True)):
        before = small.audit()
        before["calibration"]["nll"] = small.number(old)
        assert holds("nll: no worse than old.json by 0.01", baselines={"old.json": before}) == expected


def test_the_worst_class_the_worst_group_and_findings():
    audit = small.audit()
    audit["classes"] = [{"name": str(k), "images": 9, "accuracy": small.number(0.9 - 0.1 * k)} for k in range(3)]
    audit["classes"].append({"name": "empty", "images": 0, "accuracy": None})
    audit["groups"] = [{"name": name, "images": 9, "accuracy": small.number(value)} for name, value in (("a", 0.6), ("b", 0.8))]
    audit["preflight"] = [{"name": "x", "message": "m", "advice": "a", "severity": each} for each in ("fatal", "note", "fatal")]
    assert holds("worst_class.accuracy > 0.69", audit)
    assert not holds("worst_class.accuracy > 0.71", audit)
    assert not holds("worst_group.accuracy > 0.61", audit)
    assert not holds("preflight.fatal == 0", audit)
    assert holds("preflight.fatal == 2", audit)
    assert holds("preflight.warning == 0", audit)


def test_as_json():
    rules = [parse_rule("ece < 0.03"), parse_rule("accuracy > 0.95")]
    read = json.loads(FORMATS["json"]("m", judge(rules, small.audit())))
    assert (read["name"], read["holds"], [row["holds"] for row in read["rules"]]) == ("m", False, [True, False])
    first = {key: read["rules"][0][key] for key in ("name", "sign", "bound", "judged", "holds", "value")}
    assert first == {"name": "calibration.ece", "sign": "<", "bound": 0.03, "judged": 0.02, "holds": True, "value": 0.02}
